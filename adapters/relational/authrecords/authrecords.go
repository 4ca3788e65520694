// Package authrecords stores the records of authentication in a relational database: accounts,
// sessions, devices, tokens, challenges, pending logins, links, lockouts, counts of the history score,
// keys, the audit log and the records of the authorization server. It implements the ports of
// ports/authstore, and the stores of ports/authorization. It has the queries, not the rules: core/auth
// decides what is stored.
package authrecords

import (
	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// Set provides the stores of authentication and the root secret, except for the audit log, which the caller may want to
// measure.
var Set = wire.NewSet(NewRootSecret, NewChanges, NewKeyring, wire.Bind(new(authstore.KeyRing), new(*Keyring)), NewStores,
	wire.FieldsOf(new(Stores),
		"Accounts", "Lockouts", "Sessions", "SessionHistory", "SessionLevels", "SessionRetention", "RefreshTokens",
		"SessionCookies",
		"Devices", "DeviceTokens", "PendingLogins", "Challenges", "HistoryCounts", "HistoryDeferrals", "HistoryTotals",
		"APITokens", "APITokenExpiry",
		"Links", "Directory", "Operators", "Providers", "Identities", "Logins", "Passkeys",
		"Requests", "Families", "Secrets", "Consents", "Sightings"))

// NewChanges returns the changes that this process makes in a database.
func NewChanges(db *database.DB) authstore.Changes { return db.Changes }

// Stores are the stores of authentication in one database.
type Stores struct {
	Accounts         authstore.Accounts
	Lockouts         authstore.Lockouts
	Sessions         authstore.Sessions
	SessionHistory   authstore.SessionHistory
	SessionLevels    authstore.SessionLevels
	SessionRetention authstore.SessionRetention
	RefreshTokens    authstore.RefreshTokens
	SessionCookies   authstore.SessionCookies
	Devices          authstore.Devices
	DeviceTokens     authstore.DeviceTokens
	PendingLogins    authstore.PendingLogins
	Challenges       authstore.Challenges
	HistoryCounts    authstore.HistoryCounts
	HistoryDeferrals authstore.HistoryDeferrals
	HistoryTotals    authstore.HistoryTotals
	APITokens        authstore.APITokens
	APITokenExpiry   authstore.APITokenExpiry
	Links            authstore.Links
	Directory        authstore.Directory
	Operators        authstore.Operators
	Providers        authstore.Providers
	Identities       authstore.Identities
	Logins           authstore.Logins
	Passkeys         authstore.Passkeys
	Requests         authorization.Requests
	Families         authorization.Families
	Secrets          authorization.Secrets
	Consents         authorization.Consents
	Sightings        authorization.Sightings
}

// NewStores returns the stores of a database. It returns an error if the root secret is too short.
func NewStores(db *database.DB, root auth.RootSecret) (Stores, error) {
	key, err := root.Derive(history.KeyPurpose)
	counts := &historyStore{db, key}
	sessions := &sessionStore{newKeyed[auth.SessionID](db, "session", newSessionRow, (*sessionRow).toSession)}
	tokens := &apiTokenStore{newTable(db, "token", newAPITokenRow, (*apiTokenRow).toAPIToken)}
	people := &directory{newTable(db, "account", nil, (*personRow).toPerson)}
	return Stores{
		&accountStore{newKeyed[auth.UserID](db, "account", newAccountRow, (*accountRow).toAccount)}, &lockoutStore{db},
		sessions, sessions, sessions, sessions,
		&refreshTokenStore{newHashed(db, "refresh token", newRefreshTokenRow, (*refreshTokenRow).toRefreshToken)},
		&sessionCookieStore{newHashed(db, "session cookie", newSessionCookieRow, (*sessionCookieRow).toSessionCookie)},
		&deviceStore{newKeyed[auth.DeviceID](db, "device", newDeviceRow, (*deviceRow).toDevice)},
		&deviceTokenStore{newHashed(db, "device token", newDeviceTokenRow, (*deviceTokenRow).toDeviceToken)},
		&pendingLoginStore{newTable(db, "pending login", newPendingRow, (*pendingRow).toPendingLogin)},
		&challengeStore{newKeyed[auth.ChallengeID](db, "challenge", newChallengeRow, (*challengeRow).toChallenge)},
		counts, counts, counts, tokens, tokens,
		&linkStore{newHashed(db, "link", newLinkRow, (*linkRow).toLink)}, people, people,
		&providerStore{db}, &identityStore{newTable(db, "identity", newIdentityRow, (*identityRow).toIdentity)},
		&loginStore{newTable(db, "login", newLoginRow, (*loginRow).toLogin)},
		&passkeyStore{newTable(db, "passkey", newPasskeyRow, (*passkeyRow).toPasskey)},
		&requestStore{newHashed(db, "request", newRequestRow, (*requestRow).toRequest)},
		&familyStore{newKeyed[oauth.FamilyID](db, "family", newFamilyRow, (*familyRow).toFamily)},
		&secretStore{newHashed(db, "code or refresh token", newSecretRow, (*secretRow).toSecret)},
		&consentStore{newTable(db, "consent", newConsentRow, (*consentRow).toConsent)},
		&sightingStore{newTable(db, "sighting", newSightingRow, (*sightingRow).toSighting)},
	}, err
}
