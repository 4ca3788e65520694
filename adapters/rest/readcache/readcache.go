// Package readcache keeps finished responses to reads of the registry. A kept response is sent only
// while the published versions have the revision that it was made at, so a change by any process is
// seen at the latest after the time for which a revision is valid, and a change by this process at
// once (ADR 15). While the database is away, kept responses are sent for a limited time.
package readcache

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Answer is a response to a read.
type Answer[R any] struct {
	// Body is the body of the response. It is nil if Rest is set.
	Body *responsebody.Shared
	// Rest is a response that cannot be kept, and that one request alone can use.
	Rest R

	// Stale means that the database is away and the answer may be outdated. Age is the time since
	// it was known to be current.
	Stale bool
	Age   time.Duration
}

// Source makes the answer to a read. It returns fault.NotFound if there is nothing to read; such a
// fault is kept like an answer.
type Source[K comparable, R any] func(ctx context.Context, key K) (Answer[R], error)

// Keys is what a cache must know of its keys.
type Keys[K comparable] struct {
	Clone func(K) K        // a copy that shares no memory with the request
	Size  func(K) int      // memory in bytes
	Usual func(key K) bool // many clients read it, so it is renewed before the next one does
	// Group returns the group of a key whose answer is made together with others of the group, and
	// false for other keys. Such an answer does not name the servers that it depends on.
	Group func(K) (K, bool)
}

// Sources make answers.
type Sources[K comparable, R any] struct {
	Answer Source[K, R]
	// Group makes the answers of a group, all of which have bodies. One call is in progress at a
	// time. Its context ends when no one waits for an answer any more.
	Group func(ctx context.Context, group K) (map[K]Answer[R], error)
}

// Ports are the dependencies of a Cache. All are required.
type Ports struct {
	Changes registrystore.Changes
	Clock   clock.Clock
}

// Cache keeps answers. It is safe for concurrent use.
type Cache[K comparable, R any] struct {
	config  Config
	keys    Keys[K]
	source  Source[K, R]
	groups  *groups[K, R]
	changes registrystore.Changes
	clock   clock.Clock
	entries *otter.Cache[K, *entry] // nil if nothing is kept
	metrics *metrics

	state atomic.Pointer[state]
	reads atomic.Uint64 // begins and ends of reads of the revision

	mu      sync.Mutex // guards what follows
	check   *check     // in progress
	flights map[K]*flight[R]
	usual   map[K]struct{}
}

// entry is a kept answer: a body, or the fault that there is nothing to read.
type entry struct {
	body     *responsebody.Shared
	missing  error
	revision registrystore.Revision
	torn     bool // something may have changed while it was made: it is only sent while the database is away
	made     time.Time
	end      uint64       // place of the end of its making among the reads of the revision
	position uint64       // of the removals that the answer has
	used     atomic.Int64 // when it was last sent, Unix seconds
}

// New returns a cache, and a function that ends its goroutine.
func New[K comparable, R any](c Config, keys Keys[K], sources Sources[K, R], p Ports) (*Cache[K, R], func()) {
	cache := &Cache[K, R]{
		config: c, keys: keys, source: sources.Answer, changes: p.Changes, clock: p.Clock,
		metrics: newMetrics(), flights: map[K]*flight[R]{}, usual: map[K]struct{}{},
	}
	cache.groups = cache.newGroups(sources.Group)
	if c.Bytes == 0 {
		return cache, cache.groups.end
	}
	cache.entries = otter.Must(&otter.Options[K, *entry]{
		MaximumWeight: uint64(
			c.Bytes), //nolint:gosec // Validate has checked it
		Weigher: func(key K, e *entry) uint32 {
			return uint32(min(cache.weigh(key, e), math.MaxUint32))
		}, //nolint:gosec // it is bounded
	})
	ctx, end := context.WithCancel(context.Background())
	var renewing sync.WaitGroup
	renewing.Go(func() { cache.renewUntil(ctx) })
	return cache, func() {
		end()
		cache.groups.end()
		renewing.Wait()
		cache.entries.StopAllGoroutines()
	}
}

// overhead is the approximate memory of an entry without its key and body: 400 bytes are headers.
const overhead = 1000

// weigh returns the memory of an entry, with its compressed form, which is made later.
func (c *Cache[K, R]) weigh(key K, e *entry) int {
	size := overhead + c.keys.Size(key)
	if e.body != nil {
		size += e.body.Size() + e.body.Size()/4
	}
	return size
}

// Get returns the answer for a key. key may share memory with a request that ends after the call.
// While the database is away, it returns a kept answer that may be outdated, or fault.Unavailable.
// Other errors are those of the source.
func (c *Cache[K, R]) Get(ctx context.Context, key K) (Answer[R], error) {
	if c.entries == nil {
		if group, grouped := c.keys.Group(key); grouped {
			return c.groups.load(ctx, c.keys.Clone(group), c.keys.Clone(key), nil)
		}
		return c.source(ctx, c.keys.Clone(key))
	}
	s, err := c.currentState(ctx)
	if err != nil {
		return c.staleAnswer(key, err)
	}
	if e, ok := c.entries.GetIfPresent(key); ok && e.isCurrent(s) {
		e.noteUse(s.read)
		c.metrics.hits.Inc()
		return Answer[R]{Body: e.body}, e.missing
	}
	c.metrics.misses.Inc()
	var a Answer[R]
	if group, grouped := c.keys.Group(key); grouped {
		a, err = c.groups.load(ctx, c.keys.Clone(group), c.keys.Clone(key), s)
	} else {
		a, err = c.makeAnswer(ctx, key, s)
	}
	if fault.Is(err, fault.Unavailable) && !errors.Is(err, errBusy) {
		return c.staleAnswer(key, err)
	}
	return a, err
}

// isCurrent reports whether the answer shows the revision of a state.
func (e *entry) isCurrent(s *state) bool { return !e.torn && e.revision == s.revision }

// noteUse stores the time of a use. It writes at most once a second, because many cores read it.
func (e *entry) noteUse(at time.Time) {
	if now := at.Unix(); e.used.Load() != now {
		e.used.Store(now)
	}
}

// flight is the making of an answer that several requests wait for.
type flight[R any] struct {
	revision registrystore.Revision // known when it began
	read     time.Time              // of the revision
	begin    uint64                 // place among the reads of the revision
	done     chan struct{}
	answer   Answer[R]
	err      error
}

// errInterrupted is the result for the others if the maker of an answer panics.
var errInterrupted = errors.New("making the answer was interrupted")

// makeAnswer returns a new answer. Requests for the same key wait for one of them to make it. A
// request does not wait for an answer that began before a change that it must see.
func (c *Cache[K, R]) makeAnswer(ctx context.Context, key K, s *state) (Answer[R], error) {
	c.mu.Lock()
	f, others := c.flights[key]
	if others = others && f.revision == s.revision; !others {
		if kept := c.keptEntry(key, s); kept != nil { // made meanwhile
			c.mu.Unlock()
			return Answer[R]{Body: kept.body}, kept.missing
		}
		key = c.keys.Clone(key)
		f = &flight[R]{
			revision: s.revision, read: s.read, begin: c.reads.Add(1), done: make(chan struct{}), err: errInterrupted,
		}
		c.flights[key] = f
	}
	c.mu.Unlock()
	if !others {
		c.makeKept(context.WithoutCancel(ctx), key, f) // others wait for it, so it continues if this client gives up
		return f.answer, f.err
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return Answer[R]{}, ctx.Err()
	}
	if f.err == nil && f.answer.Body == nil {
		return c.source(ctx, c.keys.Clone(key))
	}
	return f.answer, f.err
}

// makeKept makes an answer and keeps it.
func (c *Cache[K, R]) makeKept(ctx context.Context, key K, f *flight[R]) {
	var made *entry
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.flights[key] == f {
			delete(c.flights, key)
		}
		c.keep(key, made, f)
		close(f.done)
	}()
	_, position, _ := c.changes.Removals(math.MaxUint64)
	answer, err := c.source(ctx, key)
	f.answer, f.err = answer, err
	made = c.newEntry(ctx, f, position)
}

// newEntry returns the entry of a finished answer; nil if it cannot be kept.
func (c *Cache[K, R]) newEntry(ctx context.Context, f *flight[R], position uint64) *entry {
	missing := fault.Is(f.err, fault.NotFound)
	if f.err != nil && !missing || f.err == nil && f.answer.Body == nil {
		return nil
	}
	made := &entry{body: f.answer.Body, revision: f.revision, torn: true, made: f.read, position: position}
	if missing {
		made.missing = f.err
	}
	// Without this, a later request could get a kept answer that is older than this one.
	if s, err := c.readState(ctx); err == nil && s.revision == f.revision {
		made.torn, made.made = false, s.read
	}
	made.noteUse(made.made)
	return made
}

// keep keeps the answer of a flight in place of an older one. While the database is away, a client
// must not get an answer that is older than one that was sent before, so no answer is kept if it is
// unknown which of two is the older one, or if the newer one cannot be kept. The caller holds mu.
func (c *Cache[K, R]) keep(key K, made *entry, f *flight[R]) {
	switch before, kept := c.entries.GetEntryQuietly(key); {
	case made == nil && f.err != nil: // nothing was sent
	case kept && before.Value.end > f.begin:
		c.entries.Invalidate(key)
	case made != nil:
		made.end = c.reads.Add(1)
		c.entries.Set(key, made)
		if c.keys.Usual(key) && len(c.usual) < maxUsual {
			c.usual[key] = struct{}{}
		}
	default:
		c.entries.Invalidate(key) // the answer is too large to be kept
	}
}

// Config has the settings of a Cache.
type Config struct {
	Bytes    int64         `env:"REGISTRY_CACHE_BYTES" envDefault:"67108864" desc:"memory for responses to reads of the registry that are kept, 0 to 64 GiB; 0 = none are kept"`
	StaleMax time.Duration `env:"REGISTRY_STALE_MAX" envDefault:"24h" desc:"while the database is away, how old responses to reads of the registry may be, 0 to 720h; 0 = reads are 503"`
}

const (
	maxBytes = 64 << 30
	maxStale = 30 * 24 * time.Hour
)

// Validate checks the ranges.
func (c Config) Validate() error {
	switch {
	case c.Bytes < 0 || c.Bytes > maxBytes:
		return errors.New("REGISTRY_CACHE_BYTES must be 0 to 68719476736")
	case c.StaleMax < 0 || c.StaleMax > maxStale:
		return errors.New("REGISTRY_STALE_MAX must be 0 to 720h")
	}
	return nil
}

// metrics are the metrics of a Cache.
type metrics struct {
	reads               *prometheus.CounterVec
	hits, misses, stale prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{reads: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tollgate_registry_cache_reads_total",
		Help: "Reads of the registry, by where the response came from: the cache (hit), the database (miss), or the cache while the database is away (stale).",
	}, []string{"result"})}
	m.hits, m.misses, m.stale = m.reads.WithLabelValues("hit"), m.reads.WithLabelValues("miss"),
		m.reads.WithLabelValues("stale")
	return m
}

// Measure registers the metrics in r.
func (c *Cache[K, R]) Measure(r prometheus.Registerer) {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	r.MustRegister(c.metrics.reads,
		gauge("tollgate_registry_cache_entries", "Responses to reads of the registry that are kept.", func() float64 {
			entries, _ := c.Kept()
			return float64(entries)
		}),
		gauge("tollgate_registry_cache_bytes",
			"Memory of the responses to reads of the registry that are kept, in bytes.", func() float64 {
				_, bytes := c.Kept()
				return float64(bytes)
			}),
		gauge("tollgate_registry_stale_seconds",
			"While the database is away: seconds since the kept responses were known to be current. Otherwise 0.",
			func() float64 { return c.staleAge().Seconds() }),
	)
}
