package deciding

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// loadTimeout limits how long rules and listings are read.
const loadTimeout = time.Minute

// memory has what a Service knows of rules and listings.
type memory struct {
	known   atomic.Pointer[state]
	failure atomic.Pointer[error] // of the last read; nil if it succeeded

	mu      sync.Mutex
	reading chan struct{} // closed at the end of the read that runs; nil if none does
}

// state is a snapshot with what it was made of. It never changes.
type state struct {
	snapshot *access.Snapshot
	rules    []access.Rule
	servers  []access.Listing
	revision registrystore.Revision
	read     time.Time // when the read of the revision began
	hint     uint64    // before the read
}

// snapshot returns the snapshot, which is at most as old as a revision is good unless the database is
// away. It reads the database in the background before that, so that calls do not wait as long as
// there are enough of them. It returns fault.Unavailable before the first read has succeeded.
func (s *Service) snapshot(ctx context.Context) (*access.Snapshot, error) {
	for range 2 { // a read that runs already may have begun before the last change
		fresh, due := s.isFresh()
		if fresh && !due {
			break
		}
		ended := s.refresh(ctx)
		if fresh || s.memory.known.Load() != nil && s.memory.failure.Load() != nil {
			break
		}
		if !s.await(ctx, ended) {
			break
		}
	}
	if k := s.memory.known.Load(); k != nil {
		return k.snapshot, nil
	}
	if failure := s.memory.failure.Load(); failure != nil {
		return nil, *failure
	}
	return nil, fault.New(fault.Unavailable, "the access rules are not read yet")
}

// newest returns the snapshot of a read that begins now, for those who have just changed a rule. It
// reads only what has changed.
func (s *Service) newest(ctx context.Context) (*access.Snapshot, error) {
	for range 2 { // a read that runs already may have begun before the change
		if !s.await(ctx, s.refresh(ctx)) {
			break
		}
	}
	return s.snapshot(ctx)
}

// isFresh reports whether the snapshot may be used, and whether it is to be read again.
func (s *Service) isFresh() (fresh, due bool) {
	k := s.memory.known.Load()
	if k == nil || k.hint != s.ports.Changes.Hint() {
		return false, true
	}
	age, valid := s.ports.Clock.Now().Sub(k.read), s.ports.Changes.ValidFor()
	return age >= 0 && age < valid, age < 0 || age >= valid/2
}

// await waits for the end of a read, and reports whether it was reached.
func (s *Service) await(ctx context.Context, ended <-chan struct{}) bool {
	ctx, cancel := context.WithTimeout(ctx, s.ports.Changes.AwayAfter())
	defer cancel()
	select {
	case <-ended:
		return true
	case <-ctx.Done():
		return false
	}
}

// refresh begins to read the database, unless a read runs, and returns a channel that is closed at
// its end.
func (s *Service) refresh(ctx context.Context) <-chan struct{} {
	m := &s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reading != nil {
		return m.reading
	}
	ended := make(chan struct{})
	m.reading = ended
	go func() { // for all callers
		s.read(context.WithoutCancel(ctx))
		m.mu.Lock()
		m.reading = nil
		m.mu.Unlock()
		close(ended)
	}()
	return ended
}

// read reads what has changed.
func (s *Service) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	next, err := s.load(ctx, s.memory.known.Load())
	if err != nil {
		if !fault.Is(err, fault.Unavailable) {
			err = fault.Wrap(fault.Unavailable, "the access rules cannot be read", err)
		}
		s.memory.failure.Store(&err)
		return
	}
	s.memory.known.Store(next)
	s.memory.failure.Store(nil)
}

// load returns the state after what has changed since before, which is nil at first. A change that
// is committed between both reads is read too; the revision is then older, and the next call reads it
// again.
func (s *Service) load(ctx context.Context, before *state) (*state, error) {
	next := state{read: s.ports.Clock.Now(), hint: s.ports.Changes.Hint()}
	var err error
	if next.revision, err = s.ports.Changes.Revision(ctx); err != nil {
		return nil, err
	}
	sameRules := before != nil && next.revision.Access == before.revision.Access
	sameServers := before != nil && next.revision.Changes == before.revision.Changes &&
		next.revision.Removals == before.revision.Removals
	if sameRules {
		next.rules = before.rules
	} else if next.rules, err = s.ports.Rules.List(ctx, "", access.MaxRules); err != nil {
		return nil, err
	}
	if sameServers {
		next.servers = before.servers
	} else if next.servers, err = s.ports.Servers.Listings(ctx); err != nil {
		return nil, err
	}
	if sameRules && sameServers {
		next.snapshot = before.snapshot
	} else {
		next.snapshot = access.Compile(s.config.Options, next.rules, next.servers)
	}
	return &next, nil
}
