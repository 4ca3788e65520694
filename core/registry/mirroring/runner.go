package mirroring

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/secrets"
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

const (
	// leaseTime is how long a reader of another registry has its lease without renewing it. After
	// the end of an instance, another one begins at most this time later.
	leaseTime = 30 * time.Second
	// renewEvery is the time between two renewals.
	renewEvery = 8 * time.Second
	// askEvery is the time between two attempts to get a lease that another one has.
	askEvery = 500 * time.Millisecond
)

// ErrBusy is the error of a read of a registry while another one reads it for the same mirror.
var ErrBusy = fault.New(fault.Conflict, "another instance or command reads this registry at this moment")

// errLeaseLost is the cause of the end of a read whose lease another one took.
var errLeaseLost = fault.New(fault.Conflict, "the mirror was removed meanwhile, or another instance reads the registry")

// lease is the right to read for a mirror and to change what it has.
type lease struct {
	operator *Operator
	mirror   mirror.Name
	holder   string
}

// acquire returns the lease of a mirror. With wait, it waits until another holder ends; else it
// returns ErrBusy. It returns fault.NotFound if the mirror does not exist.
func (o *Operator) acquire(ctx context.Context, name mirror.Name, wait bool) (*lease, error) {
	l := &lease{o, name, secrets.NewUUID[string](o.ports.Entropy)}
	for {
		err := l.renew(ctx)
		switch {
		case err == nil:
			return l, nil
		case !errors.Is(err, errLeaseLost):
			return nil, err
		case !wait:
			return nil, ErrBusy
		case !o.ports.Waiter.Wait(ctx, askEvery):
			return nil, ctx.Err()
		}
	}
}

// take takes the lease of a mirror, also from another holder, which notices that when it renews its
// lease, and stores nothing more.
func (o *Operator) take(ctx context.Context, name mirror.Name) (*lease, error) {
	l := &lease{o, name, secrets.NewUUID[string](o.ports.Entropy)}
	now := o.now()
	ok, err := o.ports.Mirrors.Lease(ctx, name, registrystore.Lease{
		Holder: l.holder, Now: now.AddDate(1, 0, 0), Until: now.Add(leaseTime),
	})
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, errNoMirror(name)
	case err == nil && !ok:
		return nil, ErrBusy
	}
	return l, err
}

// renew extends the lease. It returns errLeaseLost if another one has it. In a transaction, it
// keeps others from the lease until the end of the transaction.
func (l *lease) renew(ctx context.Context) error {
	now := l.operator.now()
	ok, err := l.operator.ports.Mirrors.Lease(ctx, l.mirror, registrystore.Lease{
		Holder: l.holder, Now: now, Until: now.Add(leaseTime),
	})
	switch {
	case fault.Is(err, fault.NotFound):
		return errNoMirror(l.mirror)
	case err != nil:
		return err
	case !ok:
		return errLeaseLost
	}
	return nil
}

// keep renews the lease in the background until stop is called. The context that it returns ends
// with errLeaseLost as its cause when another one has the lease, and with the error of the database
// when that cannot be known any more.
func (l *lease) keep(ctx context.Context) (kept context.Context, stop func()) {
	kept, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		renewed := l.operator.now()
		for l.operator.ports.Waiter.Wait(kept, renewEvery) {
			err := l.renew(kept)
			switch {
			case err == nil:
				renewed = l.operator.now()
			case errors.Is(err, errLeaseLost), fault.Is(err, fault.NotFound):
				cancel(errLeaseLost)
			case l.operator.now().Sub(renewed) >= leaseTime-renewEvery:
				cancel(err)
			}
		}
	}()
	return kept, func() {
		cancel(nil)
		<-done
	}
}

// release ends the lease, also when the context has ended, so that another one need not wait.
// Without a database, the lease ends by itself.
func (l *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = l.operator.ports.Mirrors.Release(ctx, l.mirror, l.holder) // it ends by itself
}
