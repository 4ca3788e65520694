// Package access returns to whom an access token belongs and checks the trust level of a session.
// It is the only place where tokens are checked. It checks the state of the session on every
// request, not only the token (contract A-26). It does not issue tokens.
package access

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/recent"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// activityStep is the age of LastActivity after which a request renews it.
const activityStep = time.Minute

// Checker checks access tokens. It is safe for concurrent use.
type Checker struct {
	tokens   secrets.TokenVerifier
	sessions authstore.Sessions
	cache    sessioncache.Cache
	api      authstore.APITokens
	clock    clock.Clock
	reads    sessionReads
	recent   Recent[[sha256.Size]byte, auth.APIToken] // by the hash of the token
	issued   *Issued                                  // nil while there is no authorization server
}

// NewChecker returns a Checker that reads sessions from s through the cache, and the tokens of
// people and of service accounts from api. i is nil while there is no authorization server, whose
// tokens are refused then.
func NewChecker( //nolint:revive // the ports, which wiring gives
	v secrets.TokenVerifier, s authstore.Sessions, cache sessioncache.Cache, api authstore.APITokens, c clock.Clock,
	changes authstore.Changes, i *Issued,
) *Checker {
	checker := &Checker{tokens: v, sessions: s, cache: cache, api: api, clock: c, issued: i}
	checker.recent.Changes = changes
	return checker
}

// Identity is to whom a token belongs: a person with a session, a publisher without one, the owner of
// a token that people or operators made, or an application of a person.
type Identity struct {
	Session   auth.Session
	Publisher *auth.Publisher // otherwise nil
	Token     *auth.APIToken  // otherwise nil
	// Granted is by what an application calls; otherwise nil. The session is that in which the person has
	// granted it, and the zero value if the provider of a company has.
	Granted *Grant
}

// Check returns the active session of a token. The error is fault.Unauthenticated with code
// invalid_token if the token is empty or not valid, its session has ended, or it belongs to no
// session; the same with code token_expired if the token or the session has expired; and
// fault.Unavailable if the database is not available.
func (c *Checker) Check(ctx context.Context, t auth.AccessToken) (auth.Session, error) {
	if auth.IsAPISecret(string(t)) {
		return auth.Session{}, fault.New(fault.Unauthenticated,
			"tokens of people and of service accounts are not accepted here: sign in").WithCode(auth.CodeInvalidToken)
	}
	identity, err := c.Identify(ctx, t, netip.Addr{})
	if err == nil && (identity.Publisher != nil || identity.Granted != nil) {
		err = errEnded()
	}
	if err != nil {
		return auth.Session{}, err
	}
	return identity.Session, nil
}

// Identify returns to whom a token belongs that was sent from an address. The caller must check
// whether the permissions of a publisher are still in force. The errors are those of Check.
func (c *Checker) Identify(ctx context.Context, t auth.AccessToken, from netip.Addr) (Identity, error) {
	if auth.IsAPISecret(string(t)) {
		token, err := c.findToken(ctx, auth.APISecret(t), from)
		return Identity{Token: &token}, err
	}
	return c.identify(ctx, t)
}

// IdentifyRecent is Identify from a copy of the token that is at most sessioncache.MaxAge old, and not
// older than a change by this process, for callers that may not cost a query each.
func (c *Checker) IdentifyRecent(ctx context.Context, t auth.AccessToken, from netip.Addr) (Identity, error) {
	if !auth.IsAPISecret(string(t)) {
		return c.identify(ctx, t)
	}
	hash, now := sha256.Sum256([]byte(t)), c.clock.Now()
	token, err := c.recent.Of(hash, now, func() (auth.APIToken, error) {
		return c.findToken(ctx, auth.APISecret(t), from)
	})
	if err == nil {
		err = checkToken(&token, now, from)
	}
	return Identity{Token: &token}, err
}

// identify returns to whom a token belongs that the service has signed.
func (c *Checker) identify(ctx context.Context, t auth.AccessToken) (Identity, error) {
	if t == "" {
		return Identity{}, fault.New(fault.Unauthenticated, "an access token is required").
			WithCode(auth.CodeInvalidToken)
	}
	claims, err := c.tokens.Verify(ctx, t)
	if err != nil {
		return Identity{}, err
	}
	if claims.IssuedAt.After(c.clock.Now().Add(auth.ClockTolerance)) {
		// Issued by a clock that was ahead, the token would be good for too long: the client gets
		// another one.
		return Identity{}, fault.New(fault.Unauthenticated, "the access token is of a clock that was ahead").
			WithCode(auth.CodeTokenExpired)
	}
	if claims.Publisher != nil {
		return Identity{Publisher: claims.Publisher}, nil
	}
	if claims.Granted != nil {
		return c.identifyGranted(ctx, &claims)
	}
	s, err := c.CheckSession(ctx, claims.SessionID)
	if err == nil && s.UserID != claims.UserID {
		err = errEnded()
	}
	if err != nil {
		return Identity{}, err
	}
	return Identity{Session: s}, nil
}

// findToken returns the token of a person or of a service account, which is read for each request:
// when it is deleted, or its owner is disabled, it ends at once on every instance. One that was
// never issued is refused without a query. The use of the token is stored once a minute; it is not
// worth refusing the request if the database cannot store it.
func (c *Checker) findToken(ctx context.Context, s auth.APISecret, from netip.Addr) (auth.APIToken, error) {
	if !s.IsWellFormed() {
		return auth.APIToken{}, errEnded()
	}
	t, err := c.api.Find(ctx, auth.HashSecret(s))
	now := c.clock.Now()
	if fault.Is(err, fault.NotFound) {
		err = errEnded()
	}
	if err == nil {
		err = checkToken(&t, now, from)
	}
	if err != nil {
		return auth.APIToken{}, err
	}
	if t.Use(now, from) {
		if err := c.api.Use(transaction.Brief(ctx), t); err != nil && !fault.Is(err, fault.Unavailable) {
			return auth.APIToken{}, err
		}
	}
	return t, nil
}

// checkToken returns an error if a token has expired, or is not good from an address.
func checkToken(t *auth.APIToken, now time.Time, from netip.Addr) error {
	switch {
	case !now.Before(t.ExpiresAt):
		return fault.New(fault.Unauthenticated, "the token has expired").WithCode(auth.CodeTokenExpired)
	case !t.Admits(from):
		return fault.New(fault.Unauthenticated, "the token is not accepted from this address").
			WithCode(auth.CodeInvalidToken)
	}
	return nil
}

// CheckSession returns a session that is active. The errors are those of Check.
func (c *Checker) CheckSession(ctx context.Context, id auth.SessionID) (auth.Session, error) {
	now := c.clock.Now()
	s, err := c.findSession(ctx, id)
	if err == nil {
		err = checkActive(&s, now)
	}
	if err != nil {
		return auth.Session{}, err
	}
	return s, nil
}

// CheckLevel is Check, and also returns the error of trust.Require, with the session, if the
// session is below the level.
func (c *Checker) CheckLevel(ctx context.Context, t auth.AccessToken, level auth.TrustLevel) (auth.Session, error) {
	s, err := c.Check(ctx, t)
	if err == nil {
		s, err = c.Confirm(ctx, s, level)
	}
	if err != nil {
		return auth.Session{}, err
	}
	return s, trust.Require(s.TrustLevel, level)
}

// Confirm returns s if it is at the level, and the session as it is stored otherwise, because a
// cached copy may have the level from before a step-up on another instance. The errors are those of
// Check.
func (c *Checker) Confirm(ctx context.Context, s auth.Session, level auth.TrustLevel) (auth.Session, error) {
	if s.TrustLevel.Admits(level) {
		return s, nil
	}
	stored, err := c.loadSession(ctx, s.ID)
	if err == nil {
		err = checkActive(&stored, c.clock.Now())
	}
	if err != nil {
		return auth.Session{}, err
	}
	return stored, nil
}

// findSession returns a session from the cache, or reads it. If several checks miss the cache at
// the same time, one reads the session and the others wait for it, so that a busy session is not
// read by all callers whenever its cached copy expires. The others take the session from the cache
// and not from the reader, because the read may have begun before the session ended; the cache
// rejects an outdated copy.
func (c *Checker) findSession(ctx context.Context, id auth.SessionID) (auth.Session, error) {
	if s, ok := c.cache.Get(ctx, id); ok {
		return s, nil
	}
	end, other := c.reads.beginRead(id)
	if other == nil {
		defer end()
		return c.loadSession(ctx, id)
	}
	select {
	case <-other:
	case <-ctx.Done(): // loadSession will return its error
	}
	if s, ok := c.cache.Get(ctx, id); ok {
		return s, nil
	}
	return c.loadSession(ctx, id)
}

// loadSession reads a session, updates its last activity and puts it into the cache. A session that
// cannot be updated because the database is not available is still returned.
func (c *Checker) loadSession(ctx context.Context, id auth.SessionID) (auth.Session, error) {
	now := c.clock.Now()
	s, err := c.sessions.Get(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return auth.Session{}, errEnded()
	}
	if err != nil {
		return auth.Session{}, err
	}
	if s.Active(now) && isStale(s.LastActivity, now) {
		err := c.sessions.Update(transaction.Brief(ctx), id, func(stored *auth.Session) error {
			if stored.Active(now) && isStale(stored.LastActivity, now) {
				stored.LastActivity = now
			}
			s = *stored
			return nil
		})
		// The last activity is not worth refusing the request: the session itself was read above.
		if err != nil && !fault.Is(err, fault.Unavailable) {
			return auth.Session{}, err
		}
	}
	c.cache.Put(ctx, s, now)
	return s, nil
}

// isStale reports whether a last activity is to be renewed: it is old, or in the future, written by
// an instance whose clock was ahead.
func isStale(last, now time.Time) bool {
	return now.Sub(last) >= activityStep || last.After(now.Add(auth.ClockTolerance))
}

func checkActive(s *auth.Session, now time.Time) error {
	switch {
	case !s.EndedAt.IsZero():
		return errEnded()
	case !s.Active(now):
		return fault.New(fault.Unauthenticated, "the session has expired: sign in again").
			WithCode(auth.CodeTokenExpired)
	}
	return nil
}

func errEnded() error {
	return fault.New(fault.Unauthenticated, "the access token is not valid").WithCode(auth.CodeInvalidToken)
}

// sessionReads records which sessions are being read. Its zero value is ready to use. It is safe
// for concurrent use.
type sessionReads struct {
	mu      sync.Mutex
	running map[auth.SessionID]chan struct{}
}

// beginRead records that a session is being read until end is called. If another goroutine is
// already reading the session, end is nil and other is closed when that read ends.
func (r *sessionReads) beginRead(id auth.SessionID) (end func(), other <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ended, ok := r.running[id]; ok {
		return nil, ended
	}
	if r.running == nil {
		r.running = map[auth.SessionID]chan struct{}{}
	}
	ended := make(chan struct{})
	r.running[id] = ended
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, id)
		close(ended)
	}, nil
}

// maxRecent is the greatest number of values in one generation of Recent.
const maxRecent = 1 << 14

// Recent keeps values that were read from the database, each for at most sessioncache.MaxAge after
// its read, and until the next change by this process. It is safe for concurrent use.
type Recent[K comparable, V any] struct {
	Changes authstore.Changes

	kept recent.Memory[K, reading[V]]
}

// reading is a value, with the time and the changes just before it was read.
type reading[V any] struct {
	value   V
	at      time.Time
	changes uint64
}

// Get returns the value of a key, unless it is unknown or too old.
func (r *Recent[K, V]) Get(key K, now time.Time) (V, bool) {
	found, ok := r.kept.Get(key)
	age := now.Sub(found.at)
	return found.value, ok && age >= 0 && age <= sessioncache.MaxAge && found.changes == r.Changes()
}

// Of returns the value of a key, which it reads unless it is kept.
func (r *Recent[K, V]) Of(key K, now time.Time, read func() (V, error)) (V, error) {
	if value, ok := r.Get(key, now); ok {
		return value, nil
	}
	return r.Keep(key, now, read)
}

// Keep reads the value of a key, which counts as read at a time.
func (r *Recent[K, V]) Keep(key K, at time.Time, read func() (V, error)) (V, error) {
	changes := r.Changes()
	value, err := read()
	if err == nil {
		r.kept.Put(key, reading[V]{value, at, changes}, 1, at, recent.Bounds{Size: maxRecent, Age: sessioncache.MaxAge})
	}
	return value, err
}
