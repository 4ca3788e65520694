package mirroring

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/ports/report"
)

const (
	// lookEvery is the time between two looks for mirrors whose next read is due.
	lookEvery = 5 * time.Second
	// parallelReads is the number of registries that an instance reads at once.
	parallelReads = 2
)

// The events of a Runner.
type (
	// Synced is a read that succeeded.
	Synced struct {
		Name    mirror.Name
		Summary Summary
	}
	// SyncFailed is a read that failed, or with an empty name that the mirrors cannot be listed.
	SyncFailed struct {
		Name mirror.Name
		Err  error
	}
	// Listed has the states of all mirrors.
	Listed struct{ Mirrors []mirror.Mirror }
)

// Runner reads other registries when that is due. Several instances may run at the same time.
type Runner struct {
	operator *Operator
	reporter report.Reporter
	slots    chan struct{}
	reading  sync.Map // the names of the mirrors for which this instance reads
}

// NewRunner returns a runner.
func NewRunner(o *Operator, r report.Reporter) *Runner {
	return &Runner{operator: o, reporter: r, slots: make(chan struct{}, parallelReads)}
}

// Run reads until the context ends, and returns when all reads have ended.
func (r *Runner) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		if err := r.start(ctx, &all); err != nil && ctx.Err() == nil {
			r.reporter.Report(SyncFailed{"", err})
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
	r.reporter.Report(Listed{mirrors})
	now := r.operator.now()
	for _, m := range mirrors {
		if !m.IsDue(now) {
			continue
		}
		if _, reading := r.reading.LoadOrStore(m.Name, true); reading {
			continue
		}
		all.Go(func() {
			defer r.reading.Delete(m.Name)
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
		r.reporter.Report(SyncFailed{name, err})
	default:
		r.reporter.Report(Synced{name, summary})
	}
}
