package reviews

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const (
	remindEvery   = 10 * time.Second // between two searches for what waits
	noticeEvery   = time.Hour        // between two notices to one reviewer, at least (contract C-17)
	countedAtMost = 100              // documents that a notice counts
	grantBatch    = 500              // grants that are read at a time
)

// ReminderPorts are the dependencies of a Reminder. All fields are required.
type ReminderPorts struct {
	Reviews  registrystore.Reviews
	Notices  registrystore.ReviewNotices
	Grants   registrystore.Grants
	Notifier authority.ReviewNotifier
	Clock    clock.Clock
	Waiter   clock.Waiter
	Reporter Reporter
}

// Reporter receives the errors of a Reminder. Its method must be safe for concurrent use.
type Reporter interface {
	// ReminderFailed reports that reviewers could not be notified. They are notified later.
	ReminderFailed(err error)
}

// Reminder notifies reviewers of what waits for them: once an hour at most, and only if something
// was submitted since the last notice. Several instances may run at the same time: one of them
// sends a notice.
type Reminder struct{ ports ReminderPorts }

// NewReminder returns a reminder.
func NewReminder(p ReminderPorts) *Reminder { return &Reminder{p} }

// Run notifies reviewers until the context ends.
func (r *Reminder) Run(ctx context.Context) {
	for {
		if err := r.NotifyAll(ctx); err != nil && ctx.Err() == nil {
			r.ports.Reporter.ReminderFailed(err)
		}
		if !r.ports.Waiter.Wait(ctx, remindEvery) {
			return
		}
	}
}

// NotifyAll notifies each reviewer for whom something new waits and whose last notice is at least an
// hour ago.
func (r *Reminder) NotifyAll(ctx context.Context) error {
	waiting, err := r.ports.Reviews.List(ctx, registrystore.ReviewQuery{State: review.Pending, Limit: 1})
	if err != nil || len(waiting.Reviews) == 0 {
		return err
	}
	var reviewer registry.Holder
	var patterns []registry.Pattern
	for after := (registry.Grant{}); ; {
		grants, err := r.ports.Grants.List(ctx, after, grantBatch)
		if err != nil {
			return err
		}
		for _, g := range grants { // ordered by holder
			if g.Action != registry.ActionReview {
				continue
			}
			if g.Holder != reviewer {
				if err := r.notify(ctx, reviewer, patterns); err != nil {
					return err
				}
				reviewer, patterns = g.Holder, nil
			}
			patterns = append(patterns, g.Pattern)
		}
		if len(grants) < grantBatch {
			return r.notify(ctx, reviewer, patterns)
		}
		after = grants[len(grants)-1]
	}
}

// notify notifies one reviewer, if something that the reviewer may decide was submitted since the
// last notice.
func (r *Reminder) notify(ctx context.Context, reviewer registry.Holder, patterns []registry.Pattern) error {
	if len(patterns) == 0 {
		return nil
	}
	now := r.ports.Clock.Now().UTC().Truncate(time.Microsecond)
	last, err := r.ports.Notices.Last(ctx, reviewer)
	if err != nil || now.Sub(last) < noticeEvery {
		return err
	}
	isNew, err := r.hasNew(ctx, reviewer, registrystore.ReviewQuery{State: review.Pending, Patterns: patterns, After: last, Limit: countedAtMost, Bytes: pageBytes})
	if err != nil || !isNew {
		return err
	}
	all, err := r.ports.Reviews.List(ctx, registrystore.ReviewQuery{State: review.Pending, Patterns: patterns, Limit: countedAtMost, Bytes: pageBytes})
	if err != nil || len(all.Reviews) == 0 {
		return err
	}
	err = r.ports.Notices.Record(ctx, reviewer, last, now)
	if fault.Is(err, fault.Conflict) {
		return nil // another instance sends it
	}
	if err == nil {
		r.ports.Notifier.NotifyReviewer(authority.WaitingNotice{
			Reviewer: reviewer, Count: len(all.Reviews), More: all.More, Server: all.Reviews[0].Name.String(), At: now,
		})
	}
	return err
}

// hasNew reports whether a query selects a review that the reviewer may decide.
func (r *Reminder) hasNew(ctx context.Context, reviewer registry.Holder, q registrystore.ReviewQuery) (bool, error) {
	found, err := r.ports.Reviews.List(ctx, q)
	if err != nil {
		return false, err
	}
	for i := range found.Reviews {
		if !found.Reviews[i].IsOwn(reviewer) {
			return true, nil
		}
	}
	return found.More, nil
}
