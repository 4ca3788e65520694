package delegating

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/domainkeys"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

const (
	maxInterval = time.Minute // between two searches for due policies
	batch       = 100         // policies that are read at a time
	// retryParts is the part of the interval after which a domain that gave no answer is tried
	// again: an hour if the interval is a day.
	retryParts = 24
)

// RecheckConfig holds the settings of the checks.
type RecheckConfig struct {
	Mode publisher.Mode
	// Interval is the time between two checks of a policy, at least one second.
	Interval time.Duration
	// UnprovenAfter is how long a key may be gone.
	UnprovenAfter time.Duration
}

// Validate returns an error that begins with the name of the first field that is out of range.
func (c RecheckConfig) Validate() error {
	if c.Interval < time.Second {
		return fmt.Errorf("Interval: %v is less than one second", c.Interval)
	}
	if c.UnprovenAfter < 0 {
		return fmt.Errorf("UnprovenAfter: %v is negative", c.UnprovenAfter)
	}
	return nil
}

// RecheckPorts are the dependencies of a Runner. All fields are required.
type RecheckPorts struct {
	Transactions transaction.Runner
	Policies     registrystore.Policies
	Keys         domainkeys.Sources
	Publishers   authority.Publishers
	Clock        clock.Clock
	Waiter       clock.Waiter
	Reporter     report.Reporter
}

// RecheckFailed is the event of policies that could not be checked. They are checked later.
type RecheckFailed struct{ Err error }

// Rechecker checks policies. Several instances may run at the same time: one of them checks a
// policy that is due.
type Rechecker struct {
	config RecheckConfig
	ports  RecheckPorts
}

// NewRechecker returns a runner.
func NewRechecker(c RecheckConfig, p RecheckPorts) *Rechecker { return &Rechecker{c, p} }

// Run checks all due policies until the context ends. It returns at once while proofs are off.
func (r *Rechecker) Run(ctx context.Context) {
	if r.config.Mode == publisher.Off {
		return
	}
	for {
		if err := r.CheckDue(ctx); err != nil && ctx.Err() == nil {
			r.ports.Reporter.Report(RecheckFailed{err})
		}
		if !r.ports.Waiter.Wait(ctx, min(r.config.Interval, maxInterval)) {
			return
		}
	}
}

// CheckDue checks the policies whose last check is at least an interval ago. It returns the errors
// of the database; a domain that gives no answer is not an error.
func (r *Rechecker) CheckDue(ctx context.Context) error {
	now := r.ports.Clock.Now()
	due := now.Add(-r.config.Interval)
	query := registrystore.PolicyQuery{CheckedBefore: due, Limit: batch}
	var failed []error
	for {
		found, err := r.ports.Policies.Find(ctx, query)
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		for i := range found {
			if err := r.checkPolicy(ctx, &found[i], due, now); err != nil {
				failed = append(failed, err)
			}
		}
		if len(found) < batch || ctx.Err() != nil {
			return errors.Join(failed...)
		}
		query.After = found[len(found)-1].ID
	}
}

// errTaken means that another instance checks the policy.
var errTaken = errors.New("another instance checks the policy")

// checkPolicy looks for the key of a policy and stores the outcome. A new policy counts as checked
// when it was created.
func (r *Rechecker) checkPolicy(ctx context.Context, p *publisher.Policy, due, now time.Time) error {
	err := r.ports.Policies.Update(ctx, p.ID, func(stored *publisher.Policy) error {
		if !stored.CheckedAt.Before(due) {
			return errTaken
		}
		stored.CheckedAt = now
		return nil
	})
	if errors.Is(err, errTaken) || fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	keys, err := r.readKeys(ctx, p)
	if err != nil {
		return r.store(ctx, p.ID, func(stored *publisher.Policy) {
			stored.CheckedAt = due.Add(r.config.Interval / retryParts)
		})
	}
	return r.storeOutcome(ctx, p.ID, keys, now)
}

// readKeys returns the keys that the domain of a policy has published. It returns
// fault.Unavailable if the domain gave no answer.
func (r *Rechecker) readKeys(ctx context.Context, p *publisher.Policy) ([]publisher.Key, error) {
	texts, err := r.ports.Keys.Of(p.Method).Texts(ctx, p.Domain)
	if err != nil && !fault.Is(err, fault.Unauthenticated) {
		return nil, err
	}
	keys, _ := publisher.ParseRecords(texts)
	return keys, nil
}

// storeOutcome stores whether the key of a policy is there. If that has changed, it records it, and
// notifies the maker of a key that is gone.
func (r *Rechecker) storeOutcome(
	ctx context.Context, id registry.PolicyID, keys []publisher.Key, now time.Time,
) error {
	var before, after publisher.Policy
	err := r.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		err := r.ports.Policies.Update(ctx, id, func(stored *publisher.Policy) error {
			before = *stored
			*stored = stored.Checked(stored.FindKey(keys, stored.State(now, r.config.UnprovenAfter)), now)
			after = *stored
			return nil
		})
		if err != nil || before.GoneSince.IsZero() == after.GoneSince.IsZero() {
			return err
		}
		return r.ports.Publishers.RecordProof(ctx, newEvent(&after))
	})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err == nil && before.GoneSince.IsZero() && !after.GoneSince.IsZero() && after.CreatedBy != "" {
		r.ports.Publishers.NotifyMaker(authority.PublisherNotice{
			Maker: string(after.CreatedBy), Failed: true, Subject: after.Domain.String(),
			Pattern: after.Pattern, At: now,
		})
	}
	return err
}

// newEvent returns the event of a key that is gone or there again.
func newEvent(p *publisher.Policy) authority.ProofAttempt {
	e := authority.ProofAttempt{
		Method: p.Method, Domain: p.Domain.String(), Key: p.Fingerprint.String(), Policies: []registry.PolicyID{p.ID},
	}
	if !p.GoneSince.IsZero() {
		e.Reason = "the domain no longer publishes the key of the policy"
	}
	return e
}

// store updates a policy, if it still exists.
func (r *Rechecker) store(ctx context.Context, id registry.PolicyID, change func(*publisher.Policy)) error {
	err := r.ports.Policies.Update(ctx, id, func(stored *publisher.Policy) error {
		change(stored)
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
