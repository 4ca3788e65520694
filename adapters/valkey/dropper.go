package valkey

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
)

var _ sessioncache.Cache = SessionDropper{}

// SessionDropper is the session cache of an operator command. It keeps no copies, and connects to
// the server only to drop the copies of ended sessions. Without a URL it does nothing: the copies
// of other processes expire within sessioncache.MaxAge.
type SessionDropper struct {
	config Config
	clock  clock.Clock
	log    *logrus.Entry
}

// NewSessionDropper returns a SessionDropper for the server of c.
func NewSessionDropper(c Config, k clock.Clock, log *logrus.Entry) SessionDropper {
	return SessionDropper{c, k, log}
}

// Get returns nothing.
func (SessionDropper) Get(context.Context, auth.SessionID) (auth.Session, bool) {
	return auth.Session{}, false
}

// Put does nothing.
func (SessionDropper) Put(context.Context, auth.Session, time.Time) {}

// Drop drops the copies of sessions. An error is logged.
func (d SessionDropper) Drop(ctx context.Context, ids ...auth.SessionID) {
	if d.config.URL == "" || len(ids) == 0 {
		return
	}
	cache, end, err := OpenSessions(ctx, d.config, auth.Key{}, d.clock, d.log) // it reads and writes no copies
	if err != nil {
		d.log.WithError(err).
			Warn("cached copies of the ended sessions could not be removed; they expire within a second")
		return
	}
	defer end()
	cache.Drop(ctx, ids...)
}
