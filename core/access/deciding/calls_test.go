package deciding_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestCalls: the calls of servers are stored each minute and at the end, and wait while they cannot be stored. What is
// no server is not counted, whatever callers name.
func TestCalls(t *testing.T) {
	fx := newFixture(t, deciding.Config{})
	fx.allow("robot", "service:robot", nil)
	day := fx.clock.Now().Unix() / 86400
	want := func(when string, calls ...string) {
		t.Helper()
		for i := range calls {
			calls[i] = fmt.Sprintf("%d com.example/%s", day, calls[i])
		}
		if !slices.Equal(fx.calls, calls) {
			t.Errorf("%s: %q, want %q", when, fx.calls, calls)
		}
		fx.calls = nil
	}
	var s *deciding.Service
	each := func(n int) {
		switch n {
		case 2: // the first write was a second before
			for range 3 {
				fx.decideBy(s, tokenOf(robot), "com.example/weather")
			}
			fx.decideBy(s, authority.Caller{}, "com.example/weather") // is asked to sign in
			for i := range 50 {
				fx.decideBy(s, tokenOf(robot), fmt.Sprintf("com.example/none-%d", i))
				fx.decideBy(s, tokenOf(robot), strings.Repeat("x", 500))
			}
		case 61:
			want("within a minute")
			fx.callsAway = true
		case 62:
			want("while the database is away")
			fx.quarantine()
			fx.hint++
			fx.decideBy(s, tokenOf(robot), "com.example/weather")
		case 122:
			want("while the database is away")
			fx.callsAway = false
		case 182:
			want("when it is back", "weather 5 1")
		case 183:
			fx.decideBy(s, tokenOf(robot), "com.example/weather")
		}
	}
	s = fx.newWaiting(deciding.Config{StaleMax: time.Hour}, &pauses{fixture: fx, most: 184, each: each})
	s.Run(t.Context())
	want("at the end", "weather 1 1")
	if got, err := s.Week(t.Context(), "com.example/weather"); err != nil || got.All != day-6 {
		t.Errorf("the week begins at %d, %v, want %d", got.All, err, day-6)
	}
}

// decideBy decides a call of a server.
func (fx *fixture) decideBy(s *deciding.Service, by authority.Caller, server string) {
	fx.t.Helper()
	q := question(by)
	q.Server = server
	_, err := s.Decide(fx.t.Context(), q)
	must.Succeed(fx.t, err)
}

// TestCallsAtOnce: no call is lost that is decided while others are stored, or cannot be.
func TestCallsAtOnce(t *testing.T) {
	const server, callers, calls = "com.example/weather", 8, 1000
	c := deciding.NewCounting(server)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range calls {
				c.Note(server, []access.Effect{access.Allow, access.Deny}[i%2])
			}
		})
	}
	var stored, denied int64
	for i := range 200 {
		some := c.Take()
		if i%2 == 0 {
			c.PutBack(some)
			continue
		}
		for _, one := range some {
			stored, denied = stored+one.All, denied+one.Denied
		}
	}
	all.Wait()
	for _, one := range c.Take() {
		stored, denied = stored+one.All, denied+one.Denied
	}
	if stored != callers*calls || denied != callers*calls/2 {
		t.Errorf("%d calls, %d denied", stored, denied)
	}
}
