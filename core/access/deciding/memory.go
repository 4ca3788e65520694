package deciding

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

const (
	// loadTimeout limits how long rules and listings are read. It only ends a read that would never end:
	// the database limits each statement.
	loadTimeout = 10 * time.Minute
	// followEvery is the time between two reads without questions, and followMost that after failures, for
	// which it is doubled each time.
	followEvery = time.Second
	followMost  = 16 * time.Second
	// longRead is the age of the last read from which on the next one takes longer than it should.
	longRead = 10 * time.Second
	// rulesAtOnce is how many rules are read at once.
	rulesAtOnce = 1000
)

// ReadFailed is an event of a Service: rules and listings could not be read. Decisions go by those of the
// last read, which began Age ago, until they are too old. It is reported once until a read succeeds.
type ReadFailed struct {
	Err error
	Age time.Duration // since the start without a read
}

// ReadAgain is an event of a Service: rules and listings were read after ReadFailed.
type ReadAgain struct{}

// memory has what a Service knows of rules and listings.
type memory struct {
	known   atomic.Pointer[state]
	failure atomic.Pointer[error] // of the last read; nil if it succeeded

	mu      sync.Mutex
	running *reading // nil if none runs
}

// reading is a read of the database for all callers.
type reading struct {
	ended chan struct{}
	err   error // after the end
}

// state is a snapshot with what it was made of. It never changes. While a read goes on, the snapshot may
// have a part of what has changed already.
type state struct {
	snapshot *access.Snapshot
	position string // up to which it has the servers, as accessstore.Servers.Changed returns it
	revision registrystore.Revision
	read     time.Time // when the read of the revision began
	hint     uint64    // before the read
}

// snapshot returns the snapshot, which is at most as old as a revision is good. It reads the database in
// the background before that, so that calls do not wait as long as there are enough of them. A caller
// that must wait gets an older snapshot only if the read that it began fails or takes too long, as both
// do while the database is away, and none that is older than the settings say: then it returns
// fault.Unavailable, and before the first read has succeeded.
func (s *Service) snapshot(ctx context.Context) (*access.Snapshot, error) {
	for range 2 { // a read that runs already may have begun before the last change, or fail because of a loss that is over
		fresh, due := s.isFresh()
		if fresh && !due {
			break
		}
		r, began := s.refresh()
		if fresh || !s.await(ctx, r) || began && r.err != nil {
			break
		}
	}
	k, failure := s.memory.known.Load(), s.memory.failure.Load()
	switch {
	case k != nil && s.ports.Clock.Now().Sub(k.read) <= s.config.StaleMax:
		return k.snapshot, nil
	case failure != nil:
		return nil, *failure
	}
	return nil, fault.New(fault.Unavailable, "the access rules are not read yet")
}

// newest returns the snapshot of a read that begins now, for those who have just changed a rule. It
// reads only what has changed.
func (s *Service) newest(ctx context.Context) (*access.Snapshot, error) {
	for range 2 { // a read that runs already may have begun before the change
		if r, _ := s.refresh(); !s.await(ctx, r) {
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

// Age returns how old rules and listings are by which decisions are made: the time since the last read, or
// since the start before the first one. The error is that of the last read, and fault.Unavailable before
// the first one; usable reports whether decisions are made all the same.
func (s *Service) Age() (age time.Duration, usable bool, err error) {
	k, failure := s.memory.known.Load(), s.memory.failure.Load()
	if k == nil {
		age, err = s.ports.Clock.Now().Sub(s.started), fault.New(fault.Unavailable, "the access rules are not read yet")
	} else {
		age = max(0, s.ports.Clock.Now().Sub(k.read))
		usable = age <= s.config.StaleMax
	}
	if failure != nil {
		err = *failure
	}
	return age, usable, err
}

// CheckUsable returns fault.Unavailable if calls are not decided: before the first read, and while rules
// and listings are too old.
func (s *Service) CheckUsable(context.Context) error {
	_, usable, err := s.Age()
	if usable {
		return nil
	}
	if err == nil {
		err = fault.New(fault.Unavailable, "the access rules are too old")
	}
	return err
}

// State returns in words what is wrong with what decides: "not read yet", or its age if the last read has
// failed or the next one takes long; otherwise an empty text.
func (s *Service) State() string {
	age, usable, err := s.Age()
	switch {
	case s.memory.known.Load() == nil:
		return "not read yet"
	case usable && err == nil && age < longRead:
		return ""
	}
	return age.Round(time.Second).String() + " old"
}

// await waits for the end of a read, and reports whether it was reached.
func (s *Service) await(ctx context.Context, r *reading) bool {
	ctx, cancel := context.WithTimeout(ctx, s.ports.Changes.AwayAfter())
	defer cancel()
	select {
	case <-r.ended:
		return true
	case <-ctx.Done():
		return false
	}
}

// refresh begins to read the database, unless a read runs, and returns the read. began is false for one
// that ran already.
func (s *Service) refresh() (r *reading, began bool) {
	m := &s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running != nil {
		return m.running, false
	}
	r = &reading{ended: make(chan struct{})}
	m.running = r
	go func() { // for all callers, none of whose deadlines ends it
		r.err = s.read()
		m.mu.Lock()
		m.running = nil
		m.mu.Unlock()
		close(r.ended)
	}()
	return r, true
}

// Follow reads rules and listings until the context ends, so that the first caller need not wait for them,
// and what has changed is in force without a question. After a failure it tries again, until it succeeds.
func (s *Service) Follow(ctx context.Context) {
	s.refresh()
	for pause := followEvery; s.ports.Waiter.Wait(ctx, pause); {
		failed := false
		if fresh, due := s.isFresh(); !fresh || due {
			r, _ := s.refresh()
			select {
			case <-ctx.Done():
				return
			case <-r.ended:
			}
			failed = r.err != nil
		}
		if pause = min(2*pause, followMost); !failed {
			pause = followEvery
		}
	}
}

// read reads what has changed, and reports the first failure, and the first success after one.
func (s *Service) read() error {
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
	defer cancel()
	err := s.load(ctx)
	if err == nil {
		if s.memory.failure.Swap(nil) != nil {
			s.ports.Reporter.Report(ReadAgain{})
		}
		return nil
	}
	if !fault.Is(err, fault.Unavailable) {
		err = fault.Wrap(fault.Unavailable, "the access rules cannot be read", err)
	}
	if s.memory.failure.Swap(&err) == nil {
		age, _, _ := s.Age()
		s.ports.Reporter.Report(ReadFailed{err, age})
	}
	return err
}

// load reads what has changed since the last read. The revision is read first: a change that is
// committed after that is read too, or the next read finds another revision.
func (s *Service) load(ctx context.Context) error {
	before := s.memory.known.Load()
	next := state{read: s.ports.Clock.Now(), hint: s.ports.Changes.Hint()}
	var err error
	if next.revision, err = s.ports.Changes.Revision(ctx); err != nil {
		return err
	}
	if before == nil {
		before = &state{snapshot: access.Compile(s.config.Options, nil, nil)}
	} else if before.hasSame(next.revision) {
		next.snapshot, next.position = before.snapshot, before.position
		s.memory.known.Store(&next)
		return nil
	}
	ctx = transaction.Long(ctx) // it takes as long as there are servers, or changes
	err = s.ports.Servers.Snapshot(ctx, func(ctx context.Context) (err error) {
		if k := s.memory.known.Load(); k != nil {
			before = k // a try before this one may have stored a part
		}
		next.snapshot = before.snapshot
		if before.position == "" || before.revision.Access != next.revision.Access {
			if err := s.loadRules(ctx, before, &next); err != nil {
				return err
			}
		}
		return s.loadServers(ctx, before, &next)
	})
	if err == nil {
		s.memory.known.Store(&next)
	}
	return err
}

// hasSame reports whether nothing has changed that decisions depend on.
func (k *state) hasSame(r registrystore.Revision) bool {
	return k.revision.Access == r.Access && k.revision.Changes == r.Changes && k.revision.Removals == r.Removals
}

// loadRules reads the rules.
func (s *Service) loadRules(ctx context.Context, before, next *state) error {
	var rules []access.Rule
	for {
		var last access.RuleName
		if len(rules) > 0 {
			last = rules[len(rules)-1].Name
		}
		page, err := s.ports.Rules.List(ctx, last, rulesAtOnce)
		if err != nil {
			return err
		}
		if rules = append(rules, page...); len(page) < rulesAtOnce {
			s.advance(before, next, next.snapshot.WithRules(rules))
			return nil
		}
	}
}

// loadServers reads the servers that have changed, in parts, each of which is in force at once, those first
// from which something was taken; and then all of them if it is not known whether these are all.
func (s *Service) loadServers(ctx context.Context, before, next *state) error {
	changes, err := s.ports.Servers.Changed(ctx, before.position)
	if err != nil {
		return err
	}
	next.position = changes.Position
	for part := range slices.Chunk(changes.Names, accessstore.MaxNames) {
		listings, err := s.ports.Servers.Named(ctx, part)
		if err != nil {
			return err
		}
		s.advance(before, next, next.snapshot.With(listings))
	}
	if !changes.Known {
		return s.loadAllServers(ctx, next)
	}
	return nil
}

func (s *Service) loadAllServers(ctx context.Context, next *state) error {
	var all []access.Listing
	for after := ""; ; {
		page, more, err := s.ports.Servers.Page(ctx, after)
		if err != nil {
			return err
		}
		all = append(all, page...)
		if after = more; after == "" {
			next.snapshot = access.Compile(s.config.Options, next.snapshot.Rules(), all)
			return nil
		}
	}
}

// advance puts a part of what is read into force: the state that is known keeps its age, and what it lacks
// is read again if the rest cannot be read.
func (s *Service) advance(before, next *state, snapshot *access.Snapshot) {
	next.snapshot = snapshot
	if before.position != "" {
		partial := *before
		partial.snapshot = snapshot
		s.memory.known.Store(&partial)
	}
}
