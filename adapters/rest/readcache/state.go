package readcache

import (
	"bytes"
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const (
	// retryGap is how long the database counts as away after a check that failed. Requests do not
	// wait for it in this time.
	retryGap = 250 * time.Millisecond
	// maxChecks limits how often a request checks the revision while there are changes all the
	// time.
	maxChecks = 3
)

// state is what is known of the revision.
type state struct {
	revision registrystore.Revision
	read     time.Time // when the read of the revision began
	hint     uint64    // before the read
	// begin and end are the places of the begin and the end of the read among those of all reads.
	begin, end uint64
	// unsure means that another read at the same time found another revision. It is unknown which
	// of them is the later one.
	unsure bool
	// failure is why the database was away at failed, after read. nil if it was not.
	failure error
	failed  time.Time
}

// isCurrent reports whether the revision is valid without another read.
func (s *state) isCurrent(now time.Time, validFor time.Duration, hint uint64) bool {
	age := now.Sub(s.read)
	return s.failure == nil && !s.unsure && s.hint == hint && age >= 0 && age < validFor
}

// check is a read of the revision that several requests wait for.
type check struct {
	done chan struct{}
	err  error
}

// currentState returns the state, with a revision that is valid. It returns the error of the
// database if that is away.
func (c *Cache[K, R]) currentState(ctx context.Context) (*state, error) {
	for range maxChecks {
		now, s := c.clock.Now(), c.state.Load()
		if s != nil {
			switch {
			case s.isCurrent(now, c.changes.ValidFor(), c.changes.Hint()):
				return s, nil
			case s.failure != nil && now.Sub(s.failed) < retryGap:
				return nil, s.failure
			}
		}
		if err := c.awaitCheck(ctx); err != nil {
			return nil, err
		}
	}
	// Changes follow each other faster than the revision can be read. A read that begins now has
	// all of them that this request must see.
	return c.readState(ctx)
}

// awaitCheck waits for a read of the revision: the one in progress, or a new one.
func (c *Cache[K, R]) awaitCheck(ctx context.Context) error {
	c.mu.Lock()
	running := c.check
	if running == nil {
		running = &check{done: make(chan struct{})}
		c.check = running
		go func() {
			_, running.err = c.readState(context.WithoutCancel(ctx))
			c.mu.Lock()
			c.check = nil
			c.mu.Unlock()
			close(running.done)
		}()
	}
	c.mu.Unlock()
	select {
	case <-running.done:
		return running.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readState reads the revision and stores it, unless a later read was faster. If another read at
// the same time found another revision, the next request must read it again: a response may have
// been sent with the later of the two.
func (c *Cache[K, R]) readState(ctx context.Context) (*state, error) {
	ctx, cancel := context.WithTimeout(ctx, c.changes.AwayAfter())
	defer cancel()
	s := &state{read: c.clock.Now(), hint: c.changes.Hint(), begin: c.reads.Add(1)}
	var err error
	if s.revision, err = c.changes.Revision(ctx); err != nil {
		return nil, c.noteFailure(s.read, err)
	}
	s.end = c.reads.Add(1)
	c.storeState(func(known *state) *state {
		later := known
		if known == nil || s.begin > known.begin {
			later = s
		}
		if known != nil && s.revision != known.revision && s.begin < known.end && known.begin < s.end {
			unsure := *later
			unsure.unsure, unsure.end = true, max(s.end, known.end)
			return &unsure
		}
		return later
	})
	return s, nil
}

// noteFailure stores that the database is away and returns the fault for the caller.
func (c *Cache[K, R]) noteFailure(began time.Time, err error) error {
	if !fault.Is(err, fault.Unavailable) {
		err = fault.Wrap(fault.Unavailable, "the database is not available", err)
	}
	now := c.clock.Now()
	c.storeState(func(known *state) *state {
		away := &state{failure: err, failed: now}
		if known != nil {
			if known.failure == nil && known.read.After(began) {
				return known
			}
			*away = *known
			away.failure, away.failed = err, now
		}
		return away
	})
	return err
}

func (c *Cache[K, R]) storeState(replace func(known *state) *state) {
	for {
		known := c.state.Load()
		if c.state.CompareAndSwap(known, replace(known)) {
			return
		}
	}
}

// staleAnswer returns the kept answer of a key while the database is away, or cause if no kept answer
// may be sent. It sends nothing that says that there is nothing to
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
