package valkey_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// newProxy returns the address of a proxy in front of target that refuses HELLO and CLIENT
// (instance.NewRedisProxy).
func newProxy(t *testing.T, target, refusal string) (address string) {
	t.Helper()
	p, err := instance.NewRedisProxy(target, refusal)
	must.Succeed(t, err)
	t.Cleanup(p.Close)
	return p.Address
}

// TestProxies counts and stores copies of sessions through proxies that refuse HELLO and CLIENT,
// with a password and a database other than 0.
func TestProxies(t *testing.T) {
	s := newServer(t, "--requirepass", "secret").start()
	for name, refusal := range map[string]string{
		"as a server":     "-ERR unknown command '%s'",
		"in other words":  "-ERR unsupported command '%s'",
		"without a name":  "-ERR invalid request%.0s",
		"with other code": "-NOPERM %s",
		"by closing":      "",
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newConfig("redis://:secret@" + newProxy(t, s.Address, refusal) + "/3")
			c := open(t, cfg)
			must.Succeed(t, c.Ping(t.Context()))
			countertest.Run(t, func(*testing.T) countertest.Subject {
				return countertest.Subject{Store: c, Key: newKeys()}
			})
			clock := system.Clock{}
			cache, end, err := valkey.OpenSessions(t.Context(), cfg, newCopyKey(t, "r"), clock, discardLog())
			must.Succeed(t, err)
			t.Cleanup(end)
			session := auth.Session{ID: auth.SessionID(newKeys()("session"))}
			await.Until(t, "a copy of a session", func() bool {
				cache.Put(t.Context(), session, clock.Now())
				_, found := cache.Get(t.Context(), session.ID)
				return found
			})
		})
	}
}
