// Package notifying holds the use cases of webhooks: operators keep them, and a Runner sends what package
// announce has recorded: one instance at a time to a webhook, in order for each server, again after a
// failure, and at least once (contract C-50 to C-57). Package event has the rules.
package notifying

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/eventsender"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

const (
	searchEvery = 500 * time.Millisecond // between two searches for what waits
	pauseAfter  = 5 * time.Second        // after an error of the database
	countEvery  = 15 * time.Second       // between two counts of what is pending and dead
	sweepEvery  = time.Hour              // between two removals of what has ended

	// leaseTime is how long an instance may deliver to a webhook without asking again. After the
	// end of an instance, another one begins at most this time later. The clocks of instances may
	// differ by leaseTime - roundTime.
	leaseTime = 20 * time.Second
	// roundTime bounds a round: attempts that begin and end together, during one lease. An attempt
	// takes at most 10 seconds.
	roundTime = 13 * time.Second
	// parallel is the number of attempts in a round; they are for different servers.
	parallel = 4

	keepDelivered = 24 * time.Hour      // how long an event that was delivered is kept
	keepDead      = 30 * 24 * time.Hour // how long a dead one is kept
	maxKept       = 10_000              // events of one webhook that are kept in either state
)

// RunnerPorts are the dependencies of a Runner. All fields are required.
type RunnerPorts struct {
	Webhooks   registrystore.Webhooks
	Deliveries registrystore.Deliveries
	Sealer     secrets.Sealer
	Sender     eventsender.Sender
	Clock      clock.Clock
	Waiter     clock.Waiter
	Entropy    secrets.Entropy
	Reporter   report.Reporter
}

// The events of a Runner.
type (
	// Attempted is an attempt. The state of the delivery is pending if it is tried again later.
	Attempted struct{ event.Delivery }
	// Counted has how many deliveries are pending and dead, of all webhooks and instances.
	Counted struct{ Pending, Dead int }
	// DeliveryFailed is an error of the database or of the secret of a webhook. What was to be done
	// is done later.
	DeliveryFailed struct{ Err error }
)

// Runner delivers events. Several instances may run at the same time.
type Runner struct {
	schedule event.Schedule
	ports    RunnerPorts
	holder   string   // of leases
	working  sync.Map // the IDs of the webhooks to which this instance delivers
}

// NewRunner returns a runner that tries deliveries again by a schedule.
func NewRunner(s event.Schedule, p RunnerPorts) *Runner {
	return &Runner{schedule: s, ports: p, holder: secrets.NewUUID[string](p.Entropy)}
}

// Run delivers events until the context ends.
func (r *Runner) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, task := range []struct {
		do    func(ctx context.Context) error
		every time.Duration
	}{{r.count, countEvery}, {r.Sweep, sweepEvery}} {
		all.Go(func() { r.repeat(ctx, task.do, task.every) })
	}
	r.repeat(ctx, func(ctx context.Context) error { return r.startWork(ctx, &all) }, searchEvery)
}

// repeat calls do until the context ends, and reports its errors.
func (r *Runner) repeat(ctx context.Context, do func(ctx context.Context) error, every time.Duration) {
	for {
		pause := every
		if err := do(ctx); err != nil && ctx.Err() == nil {
			r.ports.Reporter.Report(DeliveryFailed{err})
			pause = max(every, pauseAfter)
		}
		if !r.ports.Waiter.Wait(ctx, pause) {
			return
		}
	}
}

// startWork delivers in the background to the webhooks for which something waits, unless this
// instance does so already.
func (r *Runner) startWork(ctx context.Context, all *sync.WaitGroup) error {
	waiting, err := r.ports.Deliveries.Waiting(ctx, r.ports.Clock.Now())
	if err != nil {
		return err
	}
	for _, id := range waiting {
		if _, working := r.working.LoadOrStore(id, true); working {
			continue
		}
		all.Go(func() {
			defer r.working.Delete(id)
			if err := r.Deliver(ctx, id); err != nil && ctx.Err() == nil {
				r.ports.Reporter.Report(DeliveryFailed{err})
				r.ports.Waiter.Wait(ctx, pauseAfter)
			}
		})
	}
	return nil
}

// Deliver delivers everything that is due to a webhook, unless another instance does so. It returns
// the errors of the database; an attempt that fails is not an error.
func (r *Runner) Deliver(ctx context.Context, id event.WebhookID) error {
	leased := false
	for {
		progress, err := r.deliverRound(ctx, id, &leased)
		if err == nil && progress && ctx.Err() == nil {
			continue
		}
		if leased {
			r.release(ctx, id)
		}
		return err
	}
}

// release ends the lease of this instance, also when the context has ended, so that another one
// need not wait. Without a database, the lease ends by itself.
func (r *Runner) release(ctx context.Context, id event.WebhookID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = r.ports.Webhooks.Release(ctx, id, r.holder) // it ends by itself
}

// deliverRound makes one attempt for each of some servers, and reports whether there may be more to
// do. It sets leased when this instance has the lease.
func (r *Runner) deliverRound(ctx context.Context, id event.WebhookID, leased *bool) (bool, error) {
	round, cancel := context.WithTimeout(ctx, roundTime)
	defer cancel()
	now := r.ports.Clock.Now()
	ok, err := r.ports.Webhooks.Lease(round, id, registrystore.Lease{
		Holder: r.holder, Now: now, Until: now.Add(leaseTime),
	})
	if err != nil || !ok {
		return false, err
	}
	*leased = true
	to, err := r.openReceiver(round, id)
	if err != nil || to == nil {
		return false, err
	}
	due, err := r.ports.Deliveries.Due(round, id, now, parallel)
	if err != nil || len(due) == 0 {
		return false, err
	}
	waiting, stopWaiting := context.WithCancel(round)
	errs := make([]error, len(due))
	var lane error
	var attempts, urgent sync.WaitGroup
	for i, d := range due {
		attempts.Go(func() { errs[i] = r.attempt(round, to, d) })
	}
	urgent.Go(func() { lane = r.deliverUrgent(round, waiting, to, due) })
	attempts.Wait()
	stopWaiting()
	urgent.Wait()
	err = errors.Join(append(errs, lane)...)
	return err == nil, err
}

// deliverUrgent makes attempts for the urgent deliveries that become due until waiting ends, so that
// they do not wait for the attempts of the round, which are for begun. It returns after its own.
func (r *Runner) deliverUrgent(round, waiting context.Context, to *receiver, begun []event.Delivery) error {
	var attempts sync.WaitGroup
	defer attempts.Wait()
	for r.ports.Waiter.Wait(waiting, searchEvery) {
		due, err := r.ports.Deliveries.Due(round, begun[0].Webhook, r.ports.Clock.Now(), 2*parallel)
		if err != nil {
			return err
		}
		for _, d := range due {
			same := func(b event.Delivery) bool { return b.Sequence == d.Sequence }
			if !d.Urgent || slices.ContainsFunc(begun, same) {
				continue
			}
			begun = append(begun, d)
			attempts.Go(func() {
				if err := r.attempt(round, to, d); err != nil && round.Err() == nil {
					r.ports.Reporter.Report(DeliveryFailed{err})
				}
			})
		}
	}
	return nil
}

// count reports how many deliveries are pending and dead.
func (r *Runner) count(ctx context.Context) error {
	conditions, err := r.ports.Webhooks.Conditions(ctx)
	if err != nil {
		return err
	}
	pending, dead := 0, 0
	for _, c := range conditions {
		pending, dead = pending+c.Pending, dead+c.Dead
	}
	r.ports.Reporter.Report(Counted{pending, dead})
	return nil
}

// Sweep removes deliveries that ended long ago, and the oldest of too many.
func (r *Runner) Sweep(ctx context.Context) error {
	ctx, now := transaction.Long(ctx), r.ports.Clock.Now()
	if _, err := r.ports.Deliveries.RemoveEnded(ctx, event.Delivered, now.Add(-keepDelivered), maxKept); err != nil {
		return err
	}
	_, err := r.ports.Deliveries.RemoveEnded(ctx, event.Dead, now.Add(-keepDead), maxKept)
	return err
}

// receiver is a webhook with its secret in clear.
type receiver struct {
	url    event.URL
	secret event.Secret
}

// openReceiver returns a webhook, or nil if it does not exist any more.
func (r *Runner) openReceiver(ctx context.Context, id event.WebhookID) (*receiver, error) {
	all, err := r.ports.Webhooks.List(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(w event.Webhook) bool { return w.ID == id })
	if i < 0 {
		return nil, nil
	}
	secret, err := r.ports.Sealer.Open(all[i].Secret, SealedSecret(id))
	if err != nil {
		return nil, fmt.Errorf("the secret of webhook %s: %w", id, err)
	}
	return &receiver{all[i].URL, event.Secret(secret)}, nil
}

// attempt sends an event once and stores the outcome. If the context ends meanwhile, because the
// instance or the round does, the event stays as it is and is sent again.
func (r *Runner) attempt(ctx context.Context, to *receiver, d event.Delivery) error {
	began := r.ports.Clock.Now()
	status, err := r.ports.Sender.Send(ctx, eventsender.Request{
		URL: to.url, Type: d.Type, Body: d.Body, Signature: event.Sign(to.secret, r.ports.Clock.Now(), d.Body),
	})
	if err != nil && ctx.Err() != nil {
		return nil //nolint:nilerr // the attempt does not count
	}
	now := r.ports.Clock.Now()
	d.Last = event.Attempt{At: now.UTC().Truncate(time.Microsecond), Status: status, Took: now.Sub(began)}
	if problem := describeProblem(status, err); problem == "" {
		d = d.Succeed(now)
	} else {
		d = d.Fail(r.schedule, problem, now)
	}
	if err := r.ports.Deliveries.Update(ctx, d, now); err != nil {
		return err
	}
	r.ports.Reporter.Report(Attempted{d})
	return nil
}

// describeProblem returns why an attempt failed; empty if it did not.
func describeProblem(status int, err error) string {
	switch {
	case err != nil:
		return fault.PublicMessage(err)
	case status >= 200 && status < 300:
		return ""
	case status >= 300 && status < 400:
		return fmt.Sprintf("the receiver answered with the redirect %d, which is not followed", status)
	}
	return fmt.Sprintf("the receiver answered with the status %d", status)
}
