package fakedb

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// Sessions implements [authstore.Sessions].
type Sessions struct {
	*table[auth.SessionID, auth.Session]
}

// NewSessions returns the sessions of a database.
func NewSessions(db *Database) *Sessions { return &Sessions{db.sessions} }

// End implements [authstore.Sessions].
func (s *Sessions) End(
	ctx context.Context, which authstore.SessionFilter, at time.Time, reason auth.EndReason,
) ([]auth.SessionID, error) {
	return s.change(ctx, func(session auth.Session) bool { return matchesFilter(session, which) && session.Active(at) },
		func(session *auth.Session) { session.EndedAt, session.EndReason = at, reason })
}

// Lower implements [authstore.SessionLevels].
func (s *Sessions) Lower(
	ctx context.Context, which authstore.SessionFilter, to auth.TrustLevel, at time.Time,
) ([]auth.SessionID, error) {
	return s.change(ctx, func(session auth.Session) bool {
		return matchesFilter(session, which) && session.Active(at) && session.TrustLevel > to
	}, func(session *auth.Session) { session.TrustLevel = to })
}

func matchesFilter(s auth.Session, which authstore.SessionFilter) bool {
	return s.UserID == which.UserID && (which.DeviceID == "" || s.DeviceID == which.DeviceID) &&
		(which.Except == "" || s.ID != which.Except)
}

// change changes the sessions that match, and returns their ids.
func (s *Sessions) change(
	ctx context.Context, matches func(auth.Session) bool, change func(*auth.Session),
) (ids []auth.SessionID, err error) {
	changed, err := s.changeAll(ctx, matches, newestSession, change)
	for _, session := range changed {
		ids = append(ids, session.ID)
	}
	return ids, err
}

// Active implements [authstore.Sessions].
func (s *Sessions) Active(
	ctx context.Context, user auth.UserID, at time.Time, page auth.PageRequest,
) (list []auth.Session, total int, err error) {
	list, err = s.list(ctx, func(s auth.Session) bool { return s.UserID == user && s.Active(at) },
		newestSession)
	list, total = cutPage(list, page)
	return list, total, err
}

// Trusted implements [authstore.SessionHistory].
func (s *Sessions) Trusted(ctx context.Context, user auth.UserID, limit int) ([]auth.Session, error) {
	return s.listFirst(ctx, limit, func(s auth.Session) bool {
		return s.UserID == user && s.TrustLevel.Admits(auth.LimitedTrust)
	}, newestSession)
}

func newestSession(a, b auth.Session) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
}

// CountSince implements [authstore.Sessions].
func (s *Sessions) CountSince(ctx context.Context, user auth.UserID, since time.Time) (int, error) {
	since = storedTime(since)
	found, err := s.list(ctx, func(s auth.Session) bool {
		return s.UserID == user && s.CreatedAt.After(since)
	}, newestSession)
	return len(found), err
}

// DeleteExpired implements [authstore.SessionRetention].
func (s *Sessions) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	before = storedTime(before)
	return result(ctx, s.db, func(ctx context.Context) (int, error) {
		n, err := s.removeAll(ctx, func(session auth.Session) bool {
			return session.ExpiresAt.Before(before)
		})
		ended := func(id auth.SessionID) bool { return !s.has(id) }
		_, tokens := s.db.refreshTokens.removeAll(ctx, func(t auth.RefreshToken) bool { return ended(t.SessionID) })
		_, cookies := s.db.cookies.removeAll(ctx, func(c auth.SessionCookie) bool { return ended(c.SessionID) })
		_, challenges := s.db.challenges.removeAll(ctx, func(c auth.Challenge) bool { return ended(c.SessionID) })
		_, deferred := s.db.deferred.removeAll(ctx, func(a additionRow) bool { return ended(a.Session) })
		_, families := s.db.removeFamilies(ctx, func(f *oauth.Family) bool { return f.SessionID != "" && ended(f.SessionID) })
		return n, cmp.Or(err, tokens, cookies, challenges, deferred, families)
	})
}

// RefreshTokens implements [authstore.RefreshTokens].
type RefreshTokens struct {
	*table[auth.TokenHash, auth.RefreshToken]
}

// NewRefreshTokens returns the refresh tokens of a database.
func NewRefreshTokens(db *Database) *RefreshTokens { return &RefreshTokens{db.refreshTokens} }

// Spend implements [authstore.RefreshTokens].
func (s *RefreshTokens) Spend(ctx context.Context, hash auth.TokenHash, at time.Time) error {
	return s.update(ctx, hash, func(token *auth.RefreshToken) error {
		if !token.SpentAt.IsZero() {
			return fault.New(fault.Conflict, "the refresh token was already spent")
		}
		token.SpentAt = at
		return nil
	})
}

// DeleteExpired implements [authstore.RefreshTokens].
func (s *RefreshTokens) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	return result(ctx, s.db, func(ctx context.Context) (int, error) {
		over := func(id auth.SessionID) bool {
			session := s.db.sessions.rows[id]
			ended := !session.EndedAt.IsZero() && !session.EndedAt.After(before)
			return ended || !session.ExpiresAt.After(before)
		}
		n, err := s.removeAll(ctx, func(token auth.RefreshToken) bool { return over(token.SessionID) })
		_, deferred := s.db.deferred.removeAll(ctx, func(a additionRow) bool { return over(a.Session) })
		return n, cmp.Or(err, deferred)
	})
}

// SessionCookies implements [authstore.SessionCookies].
type SessionCookies struct {
	*table[auth.TokenHash, auth.SessionCookie]
}

// NewSessionCookies returns the session cookies of a database.
func NewSessionCookies(db *Database) *SessionCookies { return &SessionCookies{db.cookies} }

// Replace implements [authstore.SessionCookies].
func (s *SessionCookies) Replace(ctx context.Context, hash auth.TokenHash, by auth.SessionCookie) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if old, err := s.Find(ctx, hash); err != nil || old.SessionID != by.SessionID {
			return cmp.Or(err, s.errNotFound())
		}
		return cmp.Or(s.remove(ctx, hash), s.put(ctx, by))
	})
}

// Devices implements [authstore.Devices].
type Devices struct {
	*table[auth.DeviceID, auth.Device]
}

// NewDevices returns the devices of a database.
func NewDevices(db *Database) *Devices { return &Devices{db.devices} }

// Ensure implements [authstore.Devices].
func (s *Devices) Ensure(ctx context.Context, d auth.Device) (stored auth.Device, created bool, err error) {
	stored, err = result(ctx, s.db, func(ctx context.Context) (auth.Device, error) {
		found, err := s.Find(ctx, d.UserID, d.Identity)
		if created = fault.Is(err, fault.NotFound); !created {
			return found, err
		}
		return detached(d), s.insert(ctx, d)
	})
	return stored, created && err == nil, err
}

// Find implements [authstore.Devices].
func (s *Devices) Find(ctx context.Context, user auth.UserID, identity auth.DeviceIdentity) (auth.Device, error) {
	return s.one(ctx, func(d auth.Device) bool {
		return d.UserID == user && d.Identity == identity && !d.Revoked
	}, newestDevice)
}

// List implements [authstore.Devices].
func (s *Devices) List(
	ctx context.Context, user auth.UserID, page auth.PageRequest,
) (list []auth.Device, total int, err error) {
	list, err = s.list(ctx, func(d auth.Device) bool { return d.UserID == user }, newestDevice)
	list, total = cutPage(list, page)
	return list, total, err
}

func newestDevice(a, b auth.Device) int {
	return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(b.ID, a.ID))
}

// DeleteUnused implements [authstore.Devices].
func (s *Devices) DeleteUnused(ctx context.Context, before time.Time) (int, error) {
	before = storedTime(before)
	return result(ctx, s.db, func(ctx context.Context) (int, error) {
		used := map[auth.DeviceID]bool{}
		for _, session := range s.db.sessions.rows {
			used[session.DeviceID] = true
		}
		n, err := s.removeAll(ctx, func(d auth.Device) bool {
			return (d.Revoked || !d.Confirmed) && d.LastSeen.Before(before) && !used[d.ID]
		})
		if err != nil {
			return 0, err
		}
		_, err = s.db.deviceTokens.removeAll(ctx, func(t auth.DeviceToken) bool {
			return !s.has(t.DeviceID)
		})
		return n, err
	})
}

// DeviceTokens implements [authstore.DeviceTokens].
type DeviceTokens struct {
	*table[auth.TokenHash, auth.DeviceToken]
}

// NewDeviceTokens returns the device tokens of a database.
func NewDeviceTokens(db *Database) *DeviceTokens { return &DeviceTokens{db.deviceTokens} }

// Add implements [authstore.DeviceTokens].
func (s *DeviceTokens) Add(ctx context.Context, token auth.DeviceToken, keep int) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if !s.db.devices.has(token.DeviceID) {
			return s.db.devices.errNotFound()
		}
		if err := s.insert(ctx, token); err != nil {
			return err
		}
		tokens, err := s.list(ctx, func(t auth.DeviceToken) bool {
			return t.DeviceID == token.DeviceID
		}, newestToken)
		for _, old := range tokens[len(first(tokens, keep)):] {
			err = cmp.Or(err, s.remove(ctx, old.Hash))
		}
		return err
	})
}

func newestToken(a, b auth.DeviceToken) int {
	return cmp.Or(b.IssuedAt.Compare(a.IssuedAt), slices.Compare(b.Hash[:], a.Hash[:]))
}

// Remove implements [authstore.DeviceTokens].
func (s *DeviceTokens) Remove(ctx context.Context, device auth.DeviceID) error {
	_, err := s.removeAll(ctx, func(t auth.DeviceToken) bool { return t.DeviceID == device })
	return err
}
