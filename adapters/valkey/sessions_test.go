package valkey_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/sessioncache/sessioncachetest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

func openSessions(t testing.TB, address string, c clock.Clock) *valkey.Sessions {
	t.Helper()
	s, end, err := valkey.OpenSessions(t.Context(), newConfig(address), newCopyKey(t, "r"), c, discardLog())
	must.Succeed(t, err)
	t.Cleanup(end)
	return s
}

func newIDs() func() auth.SessionID {
	name, last := newKeys(), new(atomic.Int64)
	return func() auth.SessionID { return auth.SessionID(name(fmt.Sprint(last.Add(1)))) }
}

// shiftedClock is the clock of the system plus an offset.
type shiftedClock struct{ by atomic.Int64 }

func (s *shiftedClock) Now() time.Time { return time.Now().Add(time.Duration(s.by.Load())) }

func (s *shiftedClock) Advance(d time.Duration) { s.by.Add(int64(d)) }

func TestSessionsContract(t *testing.T) {
	address, id := sharedServer(t), newIDs()
	sessioncachetest.Run(t, func(t *testing.T) sessioncachetest.Subject {
		c := new(shiftedClock)
		return sessioncachetest.Subject{Cache: openSessions(t, address, c), ID: id, Now: c.Now, Advance: c.Advance}
	})
}

// awaitCopy waits until one instance gets a copy that another put.
func awaitCopy(t *testing.T, what string, from, to *valkey.Sessions, s auth.Session) {
	t.Helper()
	await.Until(t, what, func() bool {
		from.Put(t.Context(), s, time.Now())
		_, ok := to.Get(t.Context(), s.ID)
		return ok
	})
}

func TestSessionsOfTwoInstances(t *testing.T) {
	address := sharedServer(t)
	a, b := openSessions(t, address, system.Clock{}), openSessions(t, address, system.Clock{})
	s := sessioncachetest.Session(newIDs()())
	awaitCopy(t, "a copy that the other instance put", a, b, s)
	await.Until(t, "a drop on the other instance", func() bool {
		a.Drop(t.Context(), s.ID) // again if the store did not answer in time
		_, ok := b.Get(t.Context(), s.ID)
		return !ok
	})
}

// TestDropOnAnotherInstanceRefusesOutdated reproduces the race between a request on one instance
// and the end of its session on another. A drop that gets no answer in time takes effect on its own
// instance only, so the test waits until the store has its mark.
func TestDropOnAnotherInstanceRefusesOutdated(t *testing.T) {
	address := sharedServer(t)
	d := newDirectClient(t, address)
	a, b := openSessions(t, address, system.Clock{}), openSessions(t, address, system.Clock{})
	s := sessioncachetest.Session(newIDs()())
	for range 20 {
		read := time.Now()
		await.Until(t, "a mark in the store", func() bool {
			a.Drop(t.Context(), s.ID)
			// "" without a mark
			mark, _ := d.Do(t.Context(), d.B().Get().Key("tollgate:session:"+string(s.ID)).Build()).ToString()
			dropped, err := strconv.ParseInt(strings.TrimPrefix(mark, "\x02"), 10, 64)
			return err == nil && dropped >= read.UnixMicro()
		})
		b.Put(t.Context(), s, read)
		sessioncachetest.MustMiss(t, b, s.ID, "read before the drop, on the instance that read it")
		sessioncachetest.MustMiss(t, a, s.ID, "read before the drop, on the instance that dropped it")
	}
	awaitCopy(t, "a copy that was read after the drop", b, a, s)
}

// TestSessionsExpireInTheStore checks that the expiry in the store is shorter than MaxAge.
func TestSessionsExpireInTheStore(t *testing.T) {
	s := newServer(t).start()
	c := openSessions(t, s.Address, system.Clock{})
	d := newDirectClient(t, s.Address)
	await.Until(t, "a copy in the store", func() bool {
		c.Put(t.Context(), sessioncachetest.Session("a"), time.Now())
		left, err := d.Do(t.Context(), d.B().Pttl().Key("tollgate:session:a").Build()).AsInt64()
		if err != nil || left == 0 || left < -1 {
			return false
		}
		if left == -1 || time.Duration(left)*time.Millisecond > sessioncache.MaxAge {
			t.Errorf("the store keeps a copy for %d ms", left)
		}
		return true
	})
	for _, skew := range []time.Duration{time.Hour, -time.Hour} { // an instance whose clock is wrong gets nothing
		other := new(shiftedClock)
		other.Advance(skew)
		c.Put(t.Context(), sessioncachetest.Session("a"), time.Now())
		sessioncachetest.MustMiss(t, openSessions(t, s.Address, other), "a", "clock off by "+skew.String())
	}
}

func TestHotSessionIsReadLocally(t *testing.T) {
	s := newServer(t).start()
	c := openSessions(t, s.Address, system.Clock{})
	session := sessioncachetest.Session("a")
	await.Until(t, "reads that do not reach the store", func() bool {
		c.Put(t.Context(), session, time.Now())
		if _, ok := c.Get(t.Context(), session.ID); !ok {
			return false
		}
		s.mustRun("CONFIG RESETSTAT")
		if _, ok := c.Get(t.Context(), session.ID); !ok {
			return false
		}
		d := newDirectClient(t, s.Address)
		stats, err := d.Do(t.Context(), d.B().Info().Section("commandstats").Build()).ToString()
		return err == nil && !strings.Contains(stats, "cmdstat_get:")
	})
}

func TestForeignCopyIsAMiss(t *testing.T) {
	s := newServer(t).start()
	c := openSessions(t, s.Address, system.Clock{})
	d := newDirectClient(t, s.Address)
	for i, value := range []string{"", "\x01", "\x02whatever", strings.Repeat("\xff", 300)} {
		id := fmt.Sprint("foreign", i)
		must.Succeed(t, d.Do(t.Context(), d.B().Set().Key("tollgate:session:"+id).Value(value).Build()).Error())
		sessioncachetest.MustMiss(t, c, auth.SessionID(id), fmt.Sprintf("value %.10q", value))
	}
}

func TestSessionsWithoutAStore(t *testing.T) {
	cfg := newConfig("127.0.0.1:" + instance.FreePort())
	cfg.Timeout = 50 * time.Millisecond
	c, end, err := valkey.OpenSessions(t.Context(), cfg, newCopyKey(t, "r"), system.Clock{}, discardLog())
	must.Succeed(t, err)
	defer end()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			c.Put(t.Context(), sessioncachetest.Session("a"), time.Now())
			sessioncachetest.MustMiss(t, c, "a", "no store")
			c.Drop(t.Context(), "a")
		})
	}
	all.Wait()
}

func TestDropWhileTheStoreIsUnreachable(t *testing.T) {
	s := newServer(t).start()
	c := openSessions(t, s.Address, system.Clock{})
	session := sessioncachetest.Session("a")
	awaitCopy(t, "a copy", c, c, session)
	s.Kill()
	c.Drop(t.Context(), session.ID)
	sessioncachetest.MustMiss(t, c, session.ID, "dropped while the store is away")
}
