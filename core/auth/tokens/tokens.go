// Package tokens makes, lists and removes the tokens of people and of service accounts, and
// announces their end. Package access checks them.
package tokens

import (
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Ports are the dependencies of a Service. All fields are required.
type Ports struct {
	Transaction transaction.Runner
	Tokens      authstore.APITokens
	Trail       *auditing.Trail
	Clock       clock.Clock
	Entropy     secrets.Entropy
}

// Service makes, lists and removes tokens. Each method returns fault.Unavailable when the database
// fails. It is safe for concurrent use.
type Service struct{ ports Ports }

// New returns a service.
func New(p Ports) *Service { return &Service{p} }

// Parse returns the token of a draft for Add. The error is that of auth.NewAPIToken.
func (s *Service) Parse(d auth.APITokenDraft) (auth.APIToken, error) {
	return auth.NewAPIToken(d, s.ports.Clock.Now())
}

// Add stores a token of an owner that maker has made, and returns it with its secret, of which only
// the hash is stored. The caller checks that maker may give its scopes. It returns fault.NotFound if
// there is no owner, and fault.Conflict if the owner has Owner.MaxTokens tokens.
func (s *Service) Add(
	ctx context.Context, owner, maker auth.Owner, t auth.APIToken,
) (auth.APIToken, auth.APISecret, error) {
	t.Owner, t.CreatedBy = owner, maker
	t, secret := secrets.IssueToken(s.ports.Entropy, t)
	err := s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		if err := s.ports.Tokens.Add(ctx, t); err != nil {
			return err
		}
		return s.ports.Trail.RecordChanges(ctx, newChange("token_add", &t))
	})
	return t, secret, err
}

// List returns at most limit tokens of an owner whose ids are greater than after, ordered by id.
func (s *Service) List(
	ctx context.Context, owner auth.Owner, after auth.APITokenID, limit int,
) ([]auth.APIToken, error) {
	return s.ports.Tokens.Of(ctx, owner, after, limit)
}

// Remove removes a token of an owner, which is refused from then on. It returns fault.NotFound if
// the owner does not have the token.
func (s *Service) Remove(ctx context.Context, owner auth.Owner, id auth.APITokenID) error {
	return s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		t, err := s.ports.Tokens.Remove(ctx, owner, id)
		if fault.Is(err, fault.NotFound) {
			return auth.NotFound("token")
		}
		if err != nil {
			return err
		}
		return s.ports.Trail.RecordChanges(ctx, newChange("token_remove", &t))
	})
}

// Since returns the tokens of a list that were made at a time or later.
func Since(all []auth.APIToken, since time.Time) []auth.APIToken {
	return slices.DeleteFunc(slices.Clone(all), func(t auth.APIToken) bool { return t.CreatedAt.Before(since) })
}

// RemoveSince removes the tokens of a person that were made at a time or later.
func (s *Service) RemoveSince(ctx context.Context, owner auth.Owner, since time.Time) error {
	return s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		all, err := s.List(ctx, owner, "", 2*owner.MaxTokens())
		if err != nil {
			return err
		}
		for _, t := range Since(all, since) {
			if err := s.Remove(ctx, owner, t.ID); err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
		}
		return nil
	})
}

// newChange returns the audit event of a token, by its prefix. It is in the log of the person who
// owns the token.
func newChange(action audit.Action, t *auth.APIToken) audit.Change {
	c := audit.Change{
		Category: audit.AccountChange, Action: action, ByOperator: true, Details: audit.About(audit.Details{
			"token": audit.Text(t.Prefix), "tokenName": audit.Text(t.Name), "scopes": audit.Text(t.Scopes.String()),
			"expiresAt": audit.Text(t.ExpiresAt.UTC().Format(time.RFC3339)),
		}, audit.Object{Kind: "token", Key: string(t.ID)}),
	}
	if service, ok := t.Owner.Service(); ok {
		c.Details["service"] = audit.Text(service)
	} else {
		c.Subject = audit.Subject(t.Owner)
	}
	return c
}

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
