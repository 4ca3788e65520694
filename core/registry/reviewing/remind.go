package reviewing

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/report"
)

const (
	remindEvery   = 10 * time.Second // between two searches for what waits
	countedAtMost = 100              // documents that a notice counts
	listedAtMost  = 20               // documents that a notice lists
	grantBatch    = 500              // grants that are read at a time

	// decisionDelay is how long after a decision of an operator its submitter is notified, at
	// least: the decision becomes visible after its time, and the clocks of commands and instances
	// differ.
	decisionDelay = 10 * time.Second
	decisionBatch = 500 // decisions of operators that are read at a time
)

// Hidden returns the notices of what operators put in quarantine after one time and not after another.
type Hidden func(ctx context.Context, after, until time.Time) ([]authority.QuarantineNotice, error)

// Show returns pending reviews with what they change; fewer if they are large.
type Show func(ctx context.Context, pending []review.Review) ([]review.Shown, error)

// ReminderPorts are the dependencies of a Reminder. All fields are required.
type ReminderPorts struct {
	Config   Config
	Reviews  registrystore.Reviews
	Backlog  registrystore.ReviewBacklog
	Notices  registrystore.ReviewNotices
	Grants   registrystore.Grants
	Hidden   Hidden
	Show     Show
	Notifier authority.ReviewNotifier
	Clock    clock.Clock
	Waiter   clock.Waiter
	Reporter report.Reporter
}

// The events of a Reminder.
type (
	// Counted has how many reviews are pending, of all instances.
	Counted struct{ Pending int }
	// ReminderFailed means that reviewers could not be notified of what waits for them, or
	// submitters of what operators decided. They are notified later.
	ReminderFailed struct{ Err error }
)

// Reminder notifies reviewers of what was submitted since the last notice, as they have chosen. It notifies submitters of what operators decided with
// commands, which send nothing themselves. Several instances may run at the same time: one of them
// sends a notice.
type Reminder struct{ ports ReminderPorts }

// NewReminder returns a reminder.
func NewReminder(p ReminderPorts) *Reminder { return &Reminder{p} }

// Run notifies reviewers and submitters until the context ends.
func (r *Reminder) Run(ctx context.Context) {
	for {
		for _, notify := range []func(context.Context) error{r.count, r.NotifyAll, r.NotifySubmitters} {
			if err := notify(ctx); err != nil && ctx.Err() == nil {
				r.ports.Reporter.Report(ReminderFailed{err})
				break
			}
		}
		if !r.ports.Waiter.Wait(ctx, remindEvery) {
			return
		}
	}
}

// count reports how many reviews are pending.
func (r *Reminder) count(ctx context.Context) error {
	pending, err := r.ports.Backlog.CountPending(ctx)
	if err == nil {
		r.ports.Reporter.Report(Counted{pending})
	}
	return err
}

// NotifyAll notifies each reviewer for whom something new waits, as the reviewer has chosen (review.Mail).
func (r *Reminder) NotifyAll(ctx context.Context) error {
	waiting, err := r.ports.Reviews.List(ctx, registrystore.ReviewQuery{State: review.Pending, Limit: 1})
	if err != nil || len(waiting.Reviews) == 0 {
		return err
	}
	var reviewer registry.Holder
	var patterns []registry.Pattern
	for next := (registrystore.GrantQuery{Action: registry.ActionReview, Limit: grantBatch}); ; {
		grants, err := r.ports.Grants.Records(ctx, next)
		if err != nil {
			return err
		}
		for _, g := range grants { // ordered by holder
			next.After = g
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
	}
}

// notify notifies one reviewer of what the reviewer may decide and was submitted since the last notice.
func (r *Reminder) notify(ctx context.Context, reviewer registry.Holder, patterns []registry.Pattern) error {
	if len(patterns) == 0 {
		return nil
	}
	now := r.ports.Clock.Now().UTC().Truncate(time.Microsecond)
	last, err := r.ports.Notices.Last(ctx, reviewer)
	until, first := last.Mail.Until(now)
	if err != nil || !until.After(last.At) {
		return err
	}
	found, err := r.ports.Reviews.List(ctx, registrystore.ReviewQuery{
		State: review.Pending, Patterns: patterns, After: last.At, Until: until, Limit: countedAtMost, Bytes: pageBytes,
	})
	if err != nil {
		return err
	}
	if found.More { // later ones are in the next notice; those of the same time, of which some may have no place, are not
		until = found.Reviews[len(found.Reviews)-1].SubmittedAt.Add(time.Microsecond)
	}
	fresh, err := r.addSecond(ctx, patterns, found.Reviews, last.At, until)
	if err != nil || !slices.ContainsFunc(fresh, func(x review.Review) bool { return !x.SinceWhen(last.At).After(first) }) {
		return err
	}
	fresh = slices.DeleteFunc(fresh, func(x review.Review) bool { return !x.WaitsFor(reviewer) })
	notice := authority.WaitingNotice{Reviewer: reviewer, Count: len(fresh), More: found.More, At: now}
	if notice.First, err = r.describe(ctx, fresh); err != nil {
		return err
	}
	err = r.ports.Notices.Record(ctx, reviewer, last.At, until)
	if fault.Is(err, fault.Conflict) {
		return nil // another instance sends it
	}
	if err == nil && len(fresh) > 0 {
		r.ports.Notifier.NotifyReviewer(notice)
	}
	return err
}

// addSecond adds what a first person has approved between two times, so that others decide about it.
func (r *Reminder) addSecond(
	ctx context.Context, patterns []registry.Pattern, fresh []review.Review, after, until time.Time,
) ([]review.Review, error) {
	if !r.ports.Config.TwoApprovals {
		return fresh, nil
	}
	second, err := r.ports.Reviews.List(ctx, registrystore.ReviewQuery{
		State: review.Pending, Patterns: patterns, FirstAfter: after, FirstUntil: until, Limit: countedAtMost, Bytes: pageBytes,
	})
	for _, one := range second.Reviews {
		if !slices.ContainsFunc(fresh, func(x review.Review) bool { return x.ID == one.ID }) {
			fresh = append(fresh, one)
		}
	}
	return fresh, err
}

// describe returns the first of what waits, as many as a notice lists, the dangerous ones first.
func (r *Reminder) describe(ctx context.Context, waiting []review.Review) (first []authority.WaitingDocument, err error) {
	if len(waiting) == 0 {
		return nil, nil
	}
	shown, err := r.ports.Show(ctx, waiting[:min(len(waiting), listedAtMost)])
	for _, s := range shown {
		d := authority.WaitingDocument{Review: s.ID, ServerName: s.Name.String(), Version: s.Version.String(), Second: s.First.By != ""}
		if s.IsDangerous() {
			d.Danger = strings.TrimSpace(s.Signs[0].Words + " " + s.Signs[0].Name)
		}
		first = append(first, d)
	}
	slices.SortStableFunc(first, func(a, b authority.WaitingDocument) int {
		return cmp.Compare(min(len(b.Danger), 1), min(len(a.Danger), 1))
	})
	return first, err
}

// NotifySubmitters notifies the submitters of what operators decided and put in quarantine since the
// last call, on whichever instance. The first call ever notifies no one.
func (r *Reminder) NotifySubmitters(ctx context.Context) error {
	until := r.ports.Clock.Now().UTC().Truncate(time.Microsecond).Add(-decisionDelay)
	before, err := r.ports.Notices.Last(ctx, review.Operator)
	last := before.At
	if err != nil || !until.After(last) {
		return err
	}
	var decided []review.Review
	var hidden []authority.QuarantineNotice
	if !last.IsZero() {
		decided, err = r.ports.Backlog.DecidedByOperator(ctx, last, until, decisionBatch)
		if err != nil {
			return err
		}
		if len(decided) == decisionBatch {
			until = decided[len(decided)-1].DecidedAt
		}
		hidden, err = r.ports.Hidden(ctx, last, until)
		if err != nil || len(decided)+len(hidden) == 0 {
			return err
		}
	}
	err = r.ports.Notices.Record(ctx, review.Operator, last, until)
	if fault.Is(err, fault.Conflict) {
		return nil // another instance sends them
	}
	if err != nil {
		return err
	}
	for _, d := range decided {
		r.ports.Notifier.NotifySubmitter(newDecisionNotice(d))
	}
	for _, n := range hidden {
		r.ports.Notifier.NotifyPublishers(n)
	}
	return nil
}

func newDecisionNotice(r review.Review) authority.DecisionNotice {
	people := r.Submitter.People()
	if r.Submitter.Key == tools.Service {
		people = nil
	}
	return authority.DecisionNotice{
		People: people, Approved: r.State == review.Approved, Changes: r.State == review.ChangesRequested, Tools: r.Kind == review.Tools,
		ServerName: r.Name.String(), Version: r.Version.String(), Review: r.ID, Comment: r.Comment, At: r.DecidedAt,
	}
}
