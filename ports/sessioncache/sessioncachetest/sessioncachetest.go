// Package sessioncachetest has the contract tests of ports/sessioncache. They test that outdated
// copies are not served and that copies are complete. An adapter decides how many copies it keeps.
package sessioncachetest

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
)

// Subject is a cache under test.
type Subject struct {
	Cache sessioncache.Cache
	// ID returns the identifier of a session that no other run of the suite has used.
	ID func() auth.SessionID
	// Now is the cache's clock.
	Now func() time.Time
	// Advance moves the cache's clock. It is nil if the clock cannot be moved.
	Advance func(d time.Duration)
}

// Run runs the suite. open returns a subject and registers its own cleanup; all of them may share
// one store.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Subject){
		"an unknown session is not found":                        missesUnknown,
		"a cached session has the value of every field":          returnsWhole,
		"a newer copy replaces an older one":                     replacesCopy,
		"a dropped copy is not found":                            dropsOne,
		"many copies are dropped in one call":                    dropsMany,
		"a copy that was read after a drop is found":             putsAfterDrop,
		"a copy that was read before a drop is ignored":          ignoresOutdated,
		"a copy that was read longer ago than MaxAge is ignored": ignoresLate,
		"a copy older than MaxAge is not found":                  expiresCopies,
		"a call with a cancelled context never fails":            toleratesCancel,
		"copies are stored and read in parallel":                 servesInParallel,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// Session returns a session in which every field is set.
func Session(id auth.SessionID) auth.Session {
	at := time.Date(2031, time.March, 4, 5, 6, 7, 891_234_000, time.UTC)
	return auth.Session{
		ID: id, UserID: "6f1e9c52-57a5-4b60-9b63-2f1c38d7e001", DeviceID: "6f1e9c52-57a5-4b60-9b63-2f1c38d7e002",
		DeviceIdentity: "identity", TrustLevel: auth.LimitedTrust, RiskScore: 37,
		CreatedAt: at, LastActivity: at.Add(time.Minute), ExpiresAt: at.Add(time.Hour),
		MaxExpiresAt: at.Add(24 * time.Hour),
		IPAddress:    netip.MustParseAddr("2001:db8::7"), EndedAt: at.Add(2 * time.Minute),
		EndReason:         auth.EndTerminated,
		ReauthenticatedAt: at.Add(time.Second),
	}
}

// MustMiss fails the test when the cache serves the session.
func MustMiss(t *testing.T, c sessioncache.Cache, id auth.SessionID, when string) {
	t.Helper()
	if got, ok := c.Get(t.Context(), id); ok {
		t.Errorf("%s: the cache serves %+v", when, got)
	}
}

// MustServe fails the test when the cache does not serve exactly this copy.
func MustServe(t *testing.T, c sessioncache.Cache, s auth.Session, when string) {
	t.Helper()
	got, ok := c.Get(t.Context(), s.ID)
	if !ok {
		t.Errorf("%s: the cache does not serve the session", when)
		return
	}
	if !reflect.DeepEqual(got, s) {
		t.Errorf("%s: the cache serves\n%+v\nwant\n%+v", when, got, s)
	}
}

// putUntilServed puts a session until the cache serves it. A cache may lose a copy at any time, so
// a store that is busy for longer than MaxAge is not a failure.
func putUntilServed(t *testing.T, s Subject, session auth.Session, when string) {
	t.Helper()
	for range 20 {
		s.Cache.Put(t.Context(), session, s.Now())
		if got, ok := s.Cache.Get(t.Context(), session.ID); ok {
			if !reflect.DeepEqual(got, session) {
				t.Errorf("%s: the cache serves\n%+v\nwant\n%+v", when, got, session)
			}
			return
		}
	}
	t.Errorf("%s: the cache never serves the session", when)
}

func missesUnknown(t *testing.T, s Subject) {
	MustMiss(t, s.Cache, s.ID(), "unknown")
	MustMiss(t, s.Cache, "", "no identifier")
	s.Cache.Drop(t.Context(), s.ID())
	s.Cache.Drop(t.Context())
}

func returnsWhole(t *testing.T, s Subject) {
	putUntilServed(t, s, Session(s.ID()), "every field set")
	putUntilServed(t, s, auth.Session{ID: s.ID()}, "no field set")
	v4 := Session(s.ID())
	v4.IPAddress = netip.MustParseAddr("192.0.2.9")
	putUntilServed(t, s, v4, "an IPv4 address")
}

func replacesCopy(t *testing.T, s Subject) {
	session := Session(s.ID())
	putUntilServed(t, s, session, "first")
	session.TrustLevel = auth.FullTrust
	session.RiskScore = 0
	for range 20 { // an older copy must go as soon as Put returns
		s.Cache.Put(t.Context(), session, s.Now())
		got, ok := s.Cache.Get(t.Context(), session.ID)
		if ok && got.TrustLevel != auth.FullTrust {
			t.Fatal("the cache serves a copy that was replaced")
		}
		if ok {
			return
		}
	}
	t.Error("the cache never serves the new copy")
}

func dropsOne(t *testing.T, s Subject) {
	gone, kept := Session(s.ID()), Session(s.ID())
	putUntilServed(t, s, gone, "before")
	s.Cache.Drop(t.Context(), gone.ID)
	MustMiss(t, s.Cache, gone.ID, "dropped")
	MustMiss(t, s.Cache, gone.ID, "dropped, asked again")
	putUntilServed(t, s, kept, "another")
	MustMiss(t, s.Cache, gone.ID, "dropped, after another was put")
}

func dropsMany(t *testing.T, s Subject) {
	const many = 40
	ids := make([]auth.SessionID, many)
	for i := range ids {
		ids[i] = s.ID()
		s.Cache.Put(t.Context(), Session(ids[i]), s.Now())
	}
	s.Cache.Drop(t.Context(), ids...)
	for _, id := range ids {
		MustMiss(t, s.Cache, id, "dropped with others")
	}
}

func putsAfterDrop(t *testing.T, s Subject) {
	session := Session(s.ID())
	putUntilServed(t, s, session, "before")
	s.Cache.Drop(t.Context(), session.ID)
	if s.Advance != nil {
		s.Advance(time.Millisecond)
	}
	session.RiskScore++
	putUntilServed(t, s, session, "put after the drop")
}

// ignoresOutdated tests the race between a request that reads a session and one that ends it: the
// copy arrives after the end.
func ignoresOutdated(t *testing.T, s Subject) {
	session := Session(s.ID())
	for range 3 {
		read := s.Now()
		s.Cache.Drop(t.Context(), session.ID)
		s.Cache.Put(t.Context(), session, read)
		MustMiss(t, s.Cache, session.ID, "read before the drop, put after it")
	}
	if s.Advance != nil {
		s.Advance(time.Millisecond)
	}
	putUntilServed(t, s, session, "read after the drop")
}

// ignoresLate tests that the age of a copy counts from its read.
func ignoresLate(t *testing.T, s Subject) {
	session := Session(s.ID())
	s.Cache.Put(t.Context(), session, s.Now().Add(-sessioncache.MaxAge-time.Nanosecond))
	MustMiss(t, s.Cache, session.ID, "on its way for longer than MaxAge")
}

func expiresCopies(t *testing.T, s Subject) {
	session := Session(s.ID())
	putUntilServed(t, s, session, "young")
	if s.Advance == nil {
		return
	}
	s.Advance(sessioncache.MaxAge + time.Nanosecond)
	MustMiss(t, s.Cache, session.ID, "older than MaxAge")
	MustMiss(t, s.Cache, session.ID, "older than MaxAge, asked again")
	putUntilServed(t, s, session, "put anew")
}

func toleratesCancel(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	session := Session(s.ID())
	s.Cache.Put(ctx, session, s.Now())
	if got, ok := s.Cache.Get(ctx, session.ID); ok && got.ID != session.ID {
		t.Errorf("the cache serves %+v", got)
	}
	s.Cache.Put(t.Context(), session, s.Now())
	s.Cache.Drop(ctx, session.ID)
	MustMiss(t, s.Cache, session.ID, "dropped by a caller that was cancelled, on this instance")
}

func servesInParallel(t *testing.T, s Subject) {
	const workers, rounds = 16, 40
	ids := make([]auth.SessionID, workers)
	for i := range ids {
		ids[i] = s.ID()
	}
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			mine := Session(ids[worker])
			for round := range rounds {
				mine.RiskScore = round
				s.Cache.Put(t.Context(), mine, s.Now())
				if err := checkWhole(t.Context(), s.Cache, ids[(worker+round)%workers]); err != nil {
					t.Error(err)
				}
			}
			s.Cache.Drop(t.Context(), mine.ID)
			MustMiss(t, s.Cache, mine.ID, "dropped by the only one who puts it")
		})
	}
	all.Wait()
}

func checkWhole(ctx context.Context, c sessioncache.Cache, id auth.SessionID) error {
	got, ok := c.Get(ctx, id)
	wanted := Session(id)
	wanted.RiskScore = got.RiskScore
	if ok && !reflect.DeepEqual(got, wanted) {
		return fmt.Errorf("the cache serves a torn session: %+v", got)
	}
	return nil
}
