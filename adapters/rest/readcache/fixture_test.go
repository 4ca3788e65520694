package readcache_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// store is a registry whose only content is a number: how many changes there were. It implements
// registrystore.Changes.
type store struct {
	mu        sync.Mutex
	revision  registrystore.Revision
	hint      uint64
	removed   []string
	forgotten bool // Removals are not complete
	failure   error
	frozen    bool // no call is answered
	large     bool // answers cannot be kept
	checks    int
	reads     map[string]int // by key
	during    func()         // called while an answer is made
	checking  func()         // called before the revision is read
}

var errAway = fault.New(fault.Unavailable, "the database is not available")

func (s *store) Revision(ctx context.Context) (registrystore.Revision, error) {
	s.mu.Lock()
	if checking := s.checking; checking != nil {
		s.mu.Unlock()
		checking()
		s.mu.Lock()
	}
	frozen := s.frozen
	s.checks++
	revision, failure := s.revision, s.failure
	s.mu.Unlock()
	if frozen {
		<-ctx.Done()
		return registrystore.Revision{}, ctx.Err()
	}
	return revision, failure
}

func (*store) ValidFor() time.Duration { return time.Second }

func (s *store) Hint() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hint
}

func (s *store) Removals(after uint64) (names []string, position uint64, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := uint64(len(s.removed))
	return s.removed[min(after, all):], all, !s.forgotten
}

// change changes the registry. The process knows of it at once if it is its own.
func (s *store) change(own bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision.Changes++
	if own {
		s.hint++
	}
}

func (s *store) set(change func(*store)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *store) countReads(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads[key]
}

type (
	answer = readcache.Answer[*int]
	cache  = readcache.Cache[string, *int]
)

// Keys with a meaning.
const (
	missingKey = "missing"
	streamKey  = "stream"
	panicKey   = "panic"
)

// read makes the answer for a key: the key and the number of changes.
func (s *store) read(_ context.Context, key string) (answer, error) {
	s.mu.Lock()
	s.reads[key]++
	n, failure, during, large := s.revision.Changes, s.failure, s.during, s.large
	s.mu.Unlock()
	if during != nil {
		during()
	}
	switch {
	case failure != nil:
		return answer{}, failure
	case key == missingKey:
		return answer{}, fault.New(fault.NotFound, "server not found")
	case key == streamKey || large:
		return answer{Rest: new(int)}, nil
	case key == panicKey:
		panic(key)
	}
	return answer{Body: responsebody.NewShared("text/plain", []byte(`"`+key+`" `+strconv.FormatInt(n, 10)))}, nil
}

// start returns a cache of a store. Keys that begin with u are usual.
func start(t testing.TB, c readcache.Config, at clock.Clock) (*store, *cache) {
	t.Helper()
	s := &store{reads: map[string]int{}}
	made, end := readcache.New(c, readcache.Keys[string]{
		Clone: func(key string) string { return key },
		Size:  func(key string) int { return len(key) },
		Usual: func(key string) bool { return key[0] == 'u' },
	}, s.read, readcache.Ports{Changes: s, Clock: at})
	t.Cleanup(end)
	return s, made
}

func newClock() *clocktest.Manual { return clocktest.NewManual(time.Unix(1_800_000_000, 0)) }

var usual = readcache.Config{Bytes: 1 << 20, StaleMax: time.Hour}

// text returns the body of the answer for a key.
func text(t *testing.T, c *cache, key string) string {
	t.Helper()
	a, err := c.Get(t.Context(), key)
	if err != nil || a.Stale {
		t.Fatalf("Get(%s): %v, stale: %t", key, err, a.Stale)
	}
	return string(a.Body.Bytes())
}
