package fakedb

import (
	"cmp"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// pendingKey identifies the pending login of a person with a device.
type pendingKey struct {
	user     auth.UserID
	identity auth.DeviceIdentity
}

// lockoutRow is a lockout with its key.
type lockoutRow struct {
	Key     auth.LockoutKey
	Lockout auth.Lockout
}

// eventRow contains the details of an event as JSON, so that they are read with the same types as
// from a database.
type eventRow struct {
	Event    audit.Event
	Details  []byte
	Position int64
}

// countKey identifies the count of a value of a person.
type countKey struct {
	user  auth.UserID
	value history.Value
}

// countRow is the count of a value, of a person or of everybody.
type countRow struct {
	User  auth.UserID // empty for that of everybody
	Value history.Value
	Count history.Count
}

// additionRow is a list of additions that are applied later.
type additionRow struct {
	Number    int64
	Session   auth.SessionID
	Additions []history.Addition
	At        time.Time
}

func (d *Database) addAuthTables() {
	d.accounts = newTable(d, "account", func(a auth.Account) auth.UserID { return a.ID }, func(a auth.Account) any {
		return a.Email
	})
	d.devices = newTable(d, "device", func(v auth.Device) auth.DeviceID { return v.ID }, func(v auth.Device) any {
		if v.Revoked {
			return nil
		}
		return pendingKey{v.UserID, v.Identity}
	})
	d.deviceTokens = newTable(d, "device token", func(t auth.DeviceToken) auth.TokenHash { return t.Hash })
	d.sessions = newTable(d, "session", func(s auth.Session) auth.SessionID { return s.ID })
	d.refreshTokens = newTable(d, "refresh token", func(t auth.RefreshToken) auth.TokenHash { return t.Hash })
	d.cookies = newTable(d, "session cookie",
		func(c auth.SessionCookie) auth.TokenHash { return c.Hash }, func(c auth.SessionCookie) any {
			return c.SessionID
		})
	d.challenges = newTable(d, "challenge", func(c auth.Challenge) auth.ChallengeID { return c.ID })
	d.pendingLogins = newTable(d, "pending login",
		func(p auth.PendingLogin) pendingKey { return pendingKey{p.UserID, p.DeviceIdentity} })
	d.links = newTable(d, "link", func(l auth.Link) auth.TokenHash { return l.Hash })
	d.lockouts = newTable(d, "lockout", func(l lockoutRow) auth.LockoutKey { return l.Key })
	d.events = newTable(d, "event", func(e eventRow) audit.EventID { return e.Event.ID })
	d.signingKeys = newTable(d, "key", func(k authstore.PublicKey) authstore.KeyID { return k.ID })
	d.rootSecrets = newTable(d, "root secret", func([]byte) int { return 0 })
	d.counts = newTable(d, "count", func(c countRow) countKey { return countKey{c.User, c.Value} })
	d.totals = newTable(d, "count", func(c countRow) history.Value { return c.Value })
	d.additions = newTable(d, "addition", func(a additionRow) int64 { return a.Number })
	d.deferred = newTable(d, "addition", func(a additionRow) auth.SessionID { return a.Session })
	d.apiTokens = newTable(d, "token", func(t auth.APIToken) auth.APITokenID { return t.ID },
		func(t auth.APIToken) any { return t.Hash })
	d.providers = newTable(d, "provider", func(p company.Provider) company.Name { return p.Name })
	d.passkeys = newTable(d, "passkey", func(p auth.Passkey) auth.PasskeyID { return p.ID },
		func(p auth.Passkey) any { return p.Credential.ID })
	d.identities = newTable(d, "identity", func(i company.Identity) company.IdentityID { return i.ID },
		func(i company.Identity) any { return [2]string{i.Issuer, i.Subject} })
	d.logins = newTable(d, "login", func(l company.Login) company.LoginID { return l.ID })
	d.addAuthRules()
}

// addAuthRules adds what refers to what, what an update cannot change, and what expires.
func (d *Database) addAuthRules() {
	d.accounts.keeps = func(old auth.Account, a *auth.Account) {
		a.ID, a.Email, a.CreatedAt = old.ID, old.Email, old.CreatedAt
	}
	d.devices.refers = func(v auth.Device) error { return d.accounts.refer(v.UserID) }
	d.devices.keeps = func(old auth.Device, v *auth.Device) { v.ID = old.ID }
	d.sessions.refers = func(s auth.Session) error {
		return cmp.Or(d.accounts.refer(s.UserID), d.devices.refer(s.DeviceID))
	}
	d.sessions.keeps = func(old auth.Session, s *auth.Session) { s.ID = old.ID }
	d.refreshTokens.refers = func(t auth.RefreshToken) error { return d.sessions.refer(t.SessionID) }
	d.cookies.refers = func(c auth.SessionCookie) error { return d.sessions.refer(c.SessionID) }
	d.challenges.refers = func(c auth.Challenge) error {
		return cmp.Or(d.accounts.refer(c.UserID), d.sessions.refer(c.SessionID))
	}
	d.challenges.keeps = func(old auth.Challenge, c *auth.Challenge) { c.ID = old.ID }
	d.challenges.expires = func(c auth.Challenge) time.Time { return c.ExpiresAt }
	d.pendingLogins.expires = func(p auth.PendingLogin) time.Time { return p.ExpiresAt }
	d.links.refers = func(l auth.Link) error {
		if l.UserID == "" {
			return nil
		}
		return d.accounts.refer(l.UserID)
	}
	d.links.expires = func(l auth.Link) time.Time { return l.ExpiresAt }
	d.apiTokens.expires = func(t auth.APIToken) time.Time { return t.ExpiresAt }
	d.passkeys.refers = func(p auth.Passkey) error { return d.accounts.refer(p.UserID) }
	d.identities.refers = func(i company.Identity) error { return d.accounts.refer(i.UserID) }
	d.logins.refers = func(l company.Login) error { return d.identities.refer(l.IdentityID) }
}
