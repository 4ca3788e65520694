package relational

import (
	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/methodstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Set provides the stores over a DB, except for the audit log, which callers may want to measure.
var Set = wire.NewSet(
	NewAccounts, wire.Bind(new(authstore.Accounts), new(*Accounts)),
	NewLockouts, wire.Bind(new(authstore.Lockouts), new(*Lockouts)),
	NewSessions, wire.Bind(new(authstore.Sessions), new(*Sessions)),
	wire.Bind(new(authstore.SessionHistory), new(*Sessions)), wire.Bind(new(authstore.SessionLevels), new(*Sessions)),
	wire.Bind(new(authstore.SessionRetention), new(*Sessions)),
	NewRefreshTokens, wire.Bind(new(authstore.RefreshTokens), new(*RefreshTokens)),
	NewDevices, wire.Bind(new(authstore.Devices), new(*Devices)),
	NewDeviceTokens, wire.Bind(new(authstore.DeviceTokens), new(*DeviceTokens)),
	NewPendingLogins, wire.Bind(new(authstore.PendingLogins), new(*PendingLogins)),
	NewChallenges, wire.Bind(new(authstore.Challenges), new(*Challenges)),
	NewKeyring, wire.Bind(new(authstore.KeyRing), new(*Keyring)),
	NewServers, wire.Bind(new(registrystore.ServerReader), new(*Servers)), wire.Bind(new(registrystore.ServerWriter), new(*Servers)),
	NewGrants, wire.Bind(new(registrystore.Grants), new(*Grants)),
	NewMethods, wire.Bind(new(methodstore.Store), new(*Methods)),
)
