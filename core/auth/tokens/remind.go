package tokens

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/report"
)

const (
	remindEvery = 10 * time.Second // between two searches for tokens that end soon
	dueBatch    = 500              // tokens that are read at a time
)

// ReminderPorts are the dependencies of a Reminder. All fields are required, except Notifier.
type ReminderPorts struct {
	Expiry   authstore.APITokenExpiry
	Grants   authority.Granter
	Notifier *notices.Notifier // nil for no notices
	Clock    clock.Clock
	Waiter   clock.Waiter
	Reporter report.Reporter
}

// ReminderFailed is an event of a Reminder: tokens that end soon could not be read or marked. They
// are announced later.
type ReminderFailed struct{ Err error }

// Reminder announces tokens that end soon: to the person who owns one, and for that of a service
// account to the person who made it. Several instances may run at the same time: one of them sends
// a notice.
type Reminder struct{ ports ReminderPorts }

// NewReminder returns a reminder.
func NewReminder(p ReminderPorts) *Reminder { return &Reminder{p} }

// Run announces tokens until the context ends.
func (r *Reminder) Run(ctx context.Context) {
	for {
		if err := r.NotifyAll(ctx); err != nil && ctx.Err() == nil {
			r.ports.Reporter.Report(ReminderFailed{err})
		}
		if !r.ports.Waiter.Wait(ctx, remindEvery) {
			return
		}
	}
}

// NotifyAll announces the tokens whose time of a notice has come.
func (r *Reminder) NotifyAll(ctx context.Context) error {
	now := r.ports.Clock.Now()
	due, err := r.ports.Expiry.Due(ctx, now, dueBatch)
	if err != nil {
		return err
	}
	for _, t := range due {
		people, err := r.responsible(ctx, &t)
		if err != nil {
			return err
		}
		err = r.ports.Expiry.MoveNotice(ctx, t.ID, t.NoticeAt, t.NextNotice(now))
		if fault.Is(err, fault.Conflict) {
			continue // another instance sends it
		}
		if err != nil {
			return err
		}
		for _, person := range people {
			r.ports.Notifier.Notify(notices.Event{
				Kind: notices.TokenEnds, UserID: auth.UserID(person), At: now,
				Token: t.Describe(),
			})
		}
	}
	return nil
}

// responsible returns who gets the notices of a token: the person whose it is, or who made it for a
// service account, or all operators if no person did.
func (r *Reminder) responsible(ctx context.Context, t *auth.APIToken) ([]string, error) {
	for _, owner := range []auth.Owner{t.Owner, t.CreatedBy} {
		if _, service := owner.Service(); !service && owner != "" {
			return []string{string(owner)}, nil
		}
	}
	return r.ports.Grants.Operators(ctx)
}
