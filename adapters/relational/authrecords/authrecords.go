// Package authrecords stores the records of authentication in a relational database: accounts,
// sessions, devices, tokens, challenges, pending logins, lockouts, counts of the history score, keys and the audit log. It
// implements the ports of ports/authstore. It has the queries, not the rules: core/auth decides
// what is stored.
package authrecords

import (
	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// Set provides the stores of authentication from a database.DB, except for the audit log, which the
// caller may want to measure.
var Set = wire.NewSet(
	NewAccounts, wire.Bind(new(authstore.Accounts), new(*Accounts)),
	NewLockouts, wire.Bind(new(authstore.Lockouts), new(*Lockouts)),
	NewSessions, wire.Bind(new(authstore.Sessions), new(*Sessions)),
	wire.Bind(new(authstore.SessionHistory), new(*Sessions)), wire.Bind(new(authstore.SessionLevels), new(*Sessions)),
	wire.Bind(new(authstore.SessionRetention), new(*Sessions)),
	NewRefreshTokens, wire.Bind(new(authstore.RefreshTokens), new(*RefreshTokens)),
	NewSessionCookies, wire.Bind(new(authstore.SessionCookies), new(*SessionCookies)),
	NewDevices, wire.Bind(new(authstore.Devices), new(*Devices)),
	NewDeviceTokens, wire.Bind(new(authstore.DeviceTokens), new(*DeviceTokens)),
	NewPendingLogins, wire.Bind(new(authstore.PendingLogins), new(*PendingLogins)),
	NewChallenges, wire.Bind(new(authstore.Challenges), new(*Challenges)),
	NewHistory, wire.Bind(new(authstore.HistoryCounts), new(*History)),
	wire.Bind(new(authstore.HistoryDeferrals), new(*History)), wire.Bind(new(authstore.HistoryTotals), new(*History)),
	NewKeyring, wire.Bind(new(authstore.KeyRing), new(*Keyring)),
)
