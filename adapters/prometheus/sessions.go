package prometheus

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
)

// SessionCache counts the hits and misses of a session cache, and passes the calls on.
type SessionCache struct {
	sessioncache.Cache
	copies  prometheus.Counter
	records prometheus.Counter
}

// NewSessionCache returns a cache whose hits and misses are counted.
func NewSessionCache(c sessioncache.Cache, r prometheus.Registerer) *SessionCache {
	checks := newLabelCounters(r, prometheus.CounterOpts{
		Name: "tollgate_session_checks_total",
		Help: "Checks of the session of an access token, by where the session was read.",
	}, "source", "copy", "records")
	return &SessionCache{Cache: c, copies: checks["copy"], records: checks["records"]}
}

// Get implements sessioncache.Cache. After a miss the caller reads the session from the database.
func (c *SessionCache) Get(ctx context.Context, id auth.SessionID) (auth.Session, bool) {
	s, found := c.Cache.Get(ctx, id)
	if found {
		c.copies.Inc()
	} else {
		c.records.Inc()
	}
	return s, found
}
