package readcache

import (
	"bytes"
	"time"
)

// staleAnswer returns the kept answer of a key while the database is away because of cause, or the
// cause if it does not exist that may be sent. It sends nothing that says that there is nothing to
// read: a server may have been published since.
func (c *Cache[K, R]) staleAnswer(key K, cause error) (Answer[R], error) {
	e, ok := c.entries.GetIfPresent(key)
	if !ok || e.missing != nil {
		return Answer[R]{}, cause
	}
	now := c.clock.Now()
	age, oldest := now.Sub(c.lastCurrent(e)), c.config.StaleMax
	_, grouped := c.keys.Group(key)
	if grouped {
		oldest = min(oldest, maxStaleGroup)
	}
	if age > oldest || c.hasRemoved(e, grouped) {
		return Answer[R]{}, cause
	}
	e.noteUse(now)
	c.metrics.stale.Inc()
	return Answer[R]{Body: e.body, Stale: true, Age: max(age, 0)}, nil
}

// lastCurrent returns when an answer was last known to be current.
func (c *Cache[K, R]) lastCurrent(e *entry) time.Time {
	if s := c.state.Load(); s != nil && e.isCurrent(s) && s.read.After(e.made) {
		return s.read
	}
	return e.made
}

// maxStaleGroup is how old the answers of a group may be while the database is away. They decide
// what may run, and do not name the servers whose removal would end their use.
const maxStaleGroup = 5 * time.Minute

// hasRemoved reports whether an answer may have a version that was deleted after it was made. It
// looks for the names of the servers in the body, in which they are written as they are, except in
// that of a group.
func (c *Cache[K, R]) hasRemoved(e *entry, grouped bool) bool {
	names, _, complete := c.changes.Removals(e.position)
	if !complete || grouped && len(names) > 0 {
		return true
	}
	if e.body == nil {
		return false
	}
	for _, name := range names {
		if bytes.Contains(e.body.Bytes(), []byte(`"`+name+`"`)) {
			return true
		}
	}
	return false
}

// IsStale reports whether the database is away and kept answers are sent.
func (c *Cache[K, R]) IsStale() bool {
	s := c.state.Load()
	return c.entries != nil && s != nil && s.failure != nil && c.entries.EstimatedSize() > 0
}

// Kept returns how many answers are kept, and their memory in bytes.
func (c *Cache[K, R]) Kept() (entries int, bytes uint64) {
	if c.entries == nil {
		return 0, 0
	}
	return c.entries.EstimatedSize(), c.entries.WeightedSize()
}

// staleAge returns for how long the kept answers have not been known to be current, while the
// database is away; otherwise 0.
func (c *Cache[K, R]) staleAge() time.Duration {
	if s := c.state.Load(); c.IsStale() && !s.read.IsZero() {
		return max(c.clock.Now().Sub(s.read), 0)
	}
	return 0
}

// isUsed reports whether an answer was sent in the last minutes.
func (e *entry) isUsed(now time.Time) bool {
	return now.Sub(time.Unix(e.used.Load(), 0)) < usedFor
}
