package mirroring

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry/mirror"
)

const (
	// lookEvery is the time between two looks for mirrors whose next read is due.
	lookEvery = 5 * time.Second
	// parallelReads is the number of registries that an instance reads at once.
	parallelReads = 2
)

// Reporter receives what a Runner does. Its methods must be safe for concurrent use.
type Reporter interface {
	// Synced reports a read that succeeded.
	Synced(name mirror.Name, s Summary)
	// SyncFailed reports a read that failed, or with an empty name that the mirrors cannot be listed.
	SyncFailed(name mirror.Name, err error)
	// Listed reports the states of all mirrors.
	Listed(all []mirror.Mirror)
}

// Runner reads other registries when that is due. Several instances may run at the same time.
type Runner struct {
	operator *Operator
	reporter Reporter
	slots    chan struct{}

	mu      sync.Mutex
	reading map[mirror.Name]bool
}

// NewRunner returns a runner.
func NewRunner(o *Operator, r Reporter) *Runner {
	return &Runner{operator: o, reporter: r, slots: make(chan struct{}, parallelReads), reading: make(map[mirror.Name]bool)}
}

// Run reads until the context ends, and returns when all reads have ended.
func (r *Runner) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		if err := r.start(ctx, &all); err != nil && ctx.Err() == nil {
			r.reporter.SyncFailed("", err)
		}
		if !r.operator.ports.Waiter.Wait(ctx, lookEvery) {
			return
		}
	}
}

// start begins the reads that are due.
func (r *Runner) start(ctx context.Context, all *sync.WaitGroup) error {
	mirrors, err := r.operator.List(ctx)
	if err != nil {
		return err
	}
	r.reporter.Listed(mirrors)
	now := r.operator.now()
	for _, m := range mirrors {
		if !m.IsDue(now) || !r.claim(m.Name) {
			continue
		}
		all.Go(func() {
			defer r.unclaim(m.Name)
			r.read(ctx, m.Name)
		})
	}
	return nil
}

// read reads one registry when there is a free slot.
func (r *Runner) read(ctx context.Context, name mirror.Name) {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-r.slots }()
	summary, err := r.operator.Sync(ctx, name, Options{IfDue: true})
	switch {
	case ctx.Err() != nil, errors.Is(err, ErrBusy), errors.Is(err, errLeaseLost):
	case err != nil:
		r.reporter.SyncFailed(name, err)
	default:
		r.reporter.Synced(name, summary)
	}
}

// claim reports whether this instance does not read for a mirror, and notes that it does.
func (r *Runner) claim(name mirror.Name) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading[name] {
		return false
	}
	r.reading[name] = true
	return true
}

func (r *Runner) unclaim(name mirror.Name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reading, name)
}
