package prometheus

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
)

// BenchmarkSessionChecks measures a lookup of a cached session, which each request with a token
// does, with counters and without.
func BenchmarkSessionChecks(b *testing.B) {
	clock := system.Clock{}
	plain := memory.NewSessions(clock, memory.Config{MaxSessions: 10})
	for name, c := range map[string]sessioncache.Cache{
		"plain": plain, "counted": NewSessionCache(plain, prometheus.NewRegistry()),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, ok := c.Get(b.Context(), "a"); !ok {
						c.Put(b.Context(), auth.Session{ID: "a", ExpiresAt: clock.Now().Add(time.Hour)}, clock.Now())
					}
				}
			})
		})
	}
}
