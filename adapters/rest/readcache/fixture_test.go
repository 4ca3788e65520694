package readcache_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
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
	slow      bool // the answers of a group are not made until their context ends
	ended     int  // how often that was
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

func (*store) ValidFor() time.Duration  { return time.Second }
func (*store) AwayAfter() time.Duration { return time.Second }

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

// readGroup makes the answers for two keys of a group. It ends with its context while the store is
// frozen.
func (s *store) readGroup(ctx context.Context, group string) (map[string]answer, error) {
	s.mu.Lock()
	frozen := s.slow
	s.mu.Unlock()
	if frozen {
		<-ctx.Done()
		s.set(func(s *store) { s.ended++ })
		return nil, ctx.Err()
	}
	answers := map[string]answer{}
	if _, err := s.read(ctx, group); err != nil {
		return nil, err
	}
	for _, member := range []string{"/a", "/b"} {
		a, err := s.read(ctx, group+member)
		if err != nil {
			return nil, err
		}
		answers[group+member] = a
	}
	return answers, nil
}

// start returns a cache of a store. Keys that begin with u are usual; g/a and g/b are of the group
// g.
func start(t testing.TB, c readcache.Config, at clock.Clock) (*store, *cache) {
	t.Helper()
	s := &store{reads: map[string]int{}}
	made, end := readcache.New(c, readcache.Keys[string]{
		Clone: func(key string) string { return key },
		Size:  func(key string) int { return len(key) },
		Usual: func(key string) bool { return key[0] == 'u' },
		Group: func(key string) (string, bool) {
			group, _, grouped := strings.Cut(key, "/")
			return group, grouped && group[0] == 'g'
		},
	}, readcache.Sources[string, *int]{Answer: s.read, Group: s.readGroup}, readcache.Ports{Changes: s, Clock: at})
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

func wantText(t *testing.T, c *cache, key, want string) {
	t.Helper()
	if got := text(t, c, key); got != want {
		t.Errorf("the answer is %s, want %s", got, want)
	}
}

func wantError(t *testing.T, c *cache, key string, want error) {
	t.Helper()
	if a, err := c.Get(t.Context(), key); !errors.Is(err, want) {
		t.Errorf("Get(%s) = %+v, %v, want %v", key, a, err, want)
	}
}

// wantReads checks how often the answer of a key was made.
func (s *store) wantReads(t *testing.T, key string, want int) {
	t.Helper()
	if n := s.countReads(key); n != want {
		t.Errorf("the answer of %s was made %d times, want %d", key, n, want)
	}
}

// holdFirst makes the first read of an answer wait. The first channel is closed when it has begun,
// and the test closes the other one.
func (s *store) holdFirst() (begun, goOn chan struct{}) {
	begun, goOn = make(chan struct{}), make(chan struct{})
	s.during = firstOnly(func() {
		close(begun)
		<-goOn
	})
	return begun, goOn
}
