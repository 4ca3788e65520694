package readcache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/fault"
)

const (
	// maxWaiting is how many requests may wait for the answers of groups. Each has a connection.
	maxWaiting = 256
	// busyTime is the Retry-After of a request beyond maxWaiting.
	busyTime = 10 * time.Second
	// maxMaking limits how long the answers of a group are made, and how long a request waits.
	maxMaking = 10 * time.Minute
)

// errBusy is the cause in the log.
var errBusy = errors.New("too many requests wait for answers that take long to make")

// groups make the answers of groups of keys, of one group at a time, for all requests that wait for
// them. It is safe for concurrent use.
type groups[K comparable, R any] struct {
	begin func(context.Context) (*beginning, error)
	make  func(ctx context.Context, group K) (map[K]Answer[R], error)
	keep  func(ctx context.Context, b *beginning, answers map[K]Answer[R])
	kept  func(key K, s *state) *entry // the entry that is current; otherwise nil

	all context.Context //nolint:containedctx // of the goroutine that makes answers
	end func()

	mu      sync.Mutex // guards what follows
	queue   []*making[K, R]
	current *making[K, R] // being made
	last    *making[K, R] // whose answers were kept; nil while nothing is made
	running bool          // makeAll
	waiting int
}

// beginning is what is known of the registry before answers are made. nil if answers are not kept.
type beginning struct {
	state    *state
	place    uint64 // among the reads of the revision
	position uint64 // of the removals that the answers have
}

// making is the making of the answers of a group.
type making[K comparable, R any] struct {
	group    K
	waiting  int  // requests
	left     bool // no one waits any more
	known    *beginning
	cancel   context.CancelFunc
	finished chan struct{}
	answers  map[K]Answer[R] // after finished, like err
	err      error
}

func (c *Cache[K, R]) newGroups(source func(context.Context, K) (map[K]Answer[R], error)) *groups[K, R] {
	g := &groups[K, R]{begin: c.begin, make: source, keep: c.keepGroup, kept: c.keptEntry}
	g.all, g.end = context.WithCancel(context.Background())
	return g
}

// load returns the answer of a key. s is what the request knows of the revision; nil if answers are
// not kept. It waits for the answers that are being made if they have everything that the request
// must see, else for the next ones. It returns fault.Unavailable if too many requests wait.
func (g *groups[K, R]) load(ctx context.Context, group, key K, s *state) (Answer[R], error) {
	m, kept, err := g.join(group, key, s)
	if err != nil || kept != nil {
		return Answer[R]{Body: kept.bodyOf()}, err
	}
	defer g.leave(m)
	limit := time.NewTimer(maxMaking)
	defer limit.Stop()
	select {
	case <-m.finished:
		return m.answers[key], m.err
	case <-limit.C:
		return Answer[R]{}, errTooBusy()
	case <-ctx.Done():
		return Answer[R]{}, ctx.Err()
	}
}

// Waiting returns how many requests wait for the answers of groups.
func (c *Cache[K, R]) Waiting() int {
	c.groups.mu.Lock()
	defer c.groups.mu.Unlock()
	return c.groups.waiting
}

func errTooBusy() error {
	return fault.Wrap(fault.Unavailable, "too many lists are being made; try again later", errBusy).After(busyTime)
}

// join adds a request to those that wait for a group, or returns an answer that was made and kept
// in the meantime.
func (g *groups[K, R]) join(group, key K, s *state) (*making[K, R], *entry, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.current
	if m == nil || m.group != group || !m.has(s) {
		if kept := g.kept(key, s); kept != nil {
			return nil, kept, nil
		}
		m = nil
	}
	if g.waiting >= maxWaiting {
		return nil, nil, errTooBusy()
	}
	if m == nil {
		m = g.enqueue(group)
	}
	m.waiting++
	g.waiting++
	return m, nil, nil
}

// has reports whether the answers have everything that a request must see.
func (m *making[K, R]) has(s *state) bool {
	return !m.left && s != nil && m.known != nil && m.known.state.revision == s.revision
}

// enqueue returns the next making of a group. g.mu must be locked.
func (g *groups[K, R]) enqueue(group K) *making[K, R] {
	if at := slices.IndexFunc(g.queue, func(m *making[K, R]) bool { return m.group == group }); at >= 0 {
		return g.queue[at]
	}
	m := &making[K, R]{group: group, finished: make(chan struct{})}
	g.queue = append(g.queue, m)
	if !g.running {
		g.running = true
		go g.makeAll()
	}
	return m
}

// leave ends the wait of a request. The last one ends the making.
func (g *groups[K, R]) leave(m *making[K, R]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.waiting--
	g.waiting--
	if m.waiting > 0 {
		return
	}
	m.left = true
	if m.cancel != nil {
		m.cancel()
	}
	g.queue = slices.DeleteFunc(g.queue, func(other *making[K, R]) bool { return other == m })
}

// makeAll makes the answers of all groups in the queue, one after the other.
func (g *groups[K, R]) makeAll() {
	for {
		ctx, cancel := context.WithTimeout(g.all, maxMaking)
		m := g.next(cancel)
		if m == nil {
			cancel()
			return
		}
		g.makeOne(ctx, m)
		cancel()
	}
}

// next takes the first group from the queue; nil from an empty one.
func (g *groups[K, R]) next(cancel context.CancelFunc) *making[K, R] {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.current = nil
	if len(g.queue) == 0 {
		g.running, g.last = false, nil
		return nil
	}
	g.current, g.queue = g.queue[0], g.queue[1:]
	g.current.cancel = cancel
	return g.current
}

// makeOne makes the answers of a group. A panic of the source is its error.
func (g *groups[K, R]) makeOne(ctx context.Context, m *making[K, R]) {
	defer close(m.finished)
	defer func() {
		if p := recover(); p != nil {
			m.err = fmt.Errorf("make the answers of a group: %v\n%s", p, debug.Stack())
		}
	}()
	known, err := g.begin(ctx)
	if err != nil {
		m.err = err
		return
	}
	g.mu.Lock()
	m.known = known
	last := g.last
	g.mu.Unlock()
	if known != nil && last != nil && last.group == m.group && last.known.state.revision == known.state.revision {
		m.answers = last.answers // its requests came before it was known what the last ones have
		return
	}
	m.answers, m.err = g.make(ctx, m.group)
	switch {
	case m.err == nil && known != nil:
		g.keep(ctx, known, m.answers)
		g.mu.Lock()
		g.last = m
		g.mu.Unlock()
	case errors.Is(m.err, context.DeadlineExceeded):
		m.err = errTooBusy()
	}
}

// begin returns what is known before the answers of a group are made.
func (c *Cache[K, R]) begin(ctx context.Context) (*beginning, error) {
	if c.entries == nil {
		return nil, nil //nolint:nilnil // answers are not kept
	}
	s, err := c.currentState(ctx)
	if err != nil {
		return nil, err
	}
	_, position, _ := c.changes.Removals(math.MaxUint64)
	return &beginning{state: s, place: c.reads.Add(1), position: position}, nil
}

// keptEntry returns the entry of a key that is current; otherwise nil.
func (c *Cache[K, R]) keptEntry(key K, s *state) *entry {
	if s == nil {
		return nil
	}
	if kept, ok := c.entries.GetEntryQuietly(key); ok && kept.Value.isCurrent(s) {
		return kept.Value
	}
	return nil
}

// bodyOf returns the body of an entry; nil without an entry.
func (e *entry) bodyOf() *responsebody.Shared {
	if e == nil {
		return nil
	}
	return e.body
}

func (c *Cache[K, R]) keepGroup(ctx context.Context, b *beginning, answers map[K]Answer[R]) {
	for key, answer := range answers {
		f := &flight[R]{revision: b.state.revision, read: b.state.read, begin: b.place, answer: answer}
		made := c.newEntry(ctx, f, b.position)
		c.mu.Lock()
		c.keep(key, made, f)
		c.mu.Unlock()
	}
}
