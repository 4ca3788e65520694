// Package retention removes expired records of authentication. A
// Sweeper sweeps once, a Runner at intervals.
package retention

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// gracePeriod is how long refresh tokens and challenges are kept after they expire, so that a late
// request gets the error of an expired one and not of an unknown one. A family of tokens that has ended
// is kept as long, so that each use of its codes and refresh tokens is seen as a replay.
const gracePeriod = 24 * time.Hour

// auditBatch is how many audit events are removed in one statement: enough to be fast, and few
// enough not to block writers.
const auditBatch = 1000

// Config says how long records are kept.
type Config struct {
	// Audit is how long an audit event is kept; 0 = for ever.
	Audit time.Duration
	// Sessions is how long a session is kept after it could last be refreshed,
	// and a device that is revoked or was never confirmed after it was last
	// seen; 0 = for ever. Risk learns from past sessions.
	Sessions time.Duration
	// Lockout is how long a count of failures may matter: the greater of the
	// lockout's window and duration.
	Lockout time.Duration
	// Interval is how often a Runner sweeps; 0 = never.
	Interval time.Duration
}

// Ports are the stores that are swept.
type Ports struct {
	Audit         authstore.AuditLog
	Sessions      authstore.SessionRetention
	RefreshTokens authstore.RefreshTokens
	Challenges    authstore.Challenges
	Pending       authstore.PendingLogins
	Companies     authstore.Logins
	Links         authstore.Links
	Lockouts      authstore.Lockouts
	Devices       authstore.Devices
	Counts        authstore.HistoryCounts
	Tokens        authstore.APITokenExpiry
	Requests      authorization.Requests
	Families      authorization.Families
	Consents      authorization.Consents
}

// Sweeper removes expired records. Several Sweepers may run on the same records at the same time.
type Sweeper struct {
	config Config
	ports  Ports
	clock  clock.Clock
}

// Validate returns an error that begins with the name of the first field that is out of range.
func (c Config) Validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Audit", c.Audit}, {"Sessions", c.Sessions}, {"Interval", c.Interval}} {
		if d.value != 0 && d.value < time.Second {
			return fmt.Errorf("%s: %v is neither 0 nor at least a second", d.name, d.value)
		}
	}
	return nil
}

// New returns a sweeper.
func New(c Config, p Ports, now clock.Clock) *Sweeper {
	return &Sweeper{config: c, ports: p, clock: now}
}

// Kind names a kind of records that is swept.
type Kind string

// The kinds.
const (
	RefreshTokens Kind = "refresh_tokens"
	Challenges    Kind = "challenges"
	PendingLogins Kind = "pending_logins"
	CompanyLogins Kind = "company_logins"
	Links         Kind = "links"
	Lockouts      Kind = "lockouts"
	Sessions      Kind = "sessions"
	Devices       Kind = "devices"
	Counts        Kind = "history_counts"
	Tokens        Kind = "tokens"
	Requests      Kind = "authorization_requests"
	Families      Kind = "authorizations"
	Consents      Kind = "consents"
	AuditEvents   Kind = "audit_events"
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{
		RefreshTokens, Challenges, PendingLogins, CompanyLogins, Links, Lockouts, Sessions, Devices, Counts, Tokens,
		Requests, Families, Consents, AuditEvents,
	}
}

// Removed is how many records of a kind a sweep removed.
type Removed struct {
	Kind  Kind
	Count int
}

// rule says how long records of a kind are kept, and how those past their time are removed.
type rule struct {
	kind   Kind
	kept   time.Duration
	remove func(ctx context.Context, before time.Time) (int, error)
}

// retentionRules returns the rules in the order of references: tokens and challenges before
// sessions, sessions before devices.
func (s *Sweeper) retentionRules() []rule {
	list := []rule{
		{RefreshTokens, gracePeriod, s.ports.RefreshTokens.DeleteExpired},
		{Challenges, gracePeriod, s.ports.Challenges.DeleteExpired},
		{PendingLogins, 0, s.ports.Pending.DeleteExpired},
		{CompanyLogins, gracePeriod, s.ports.Companies.DeleteAbandoned},
		{Links, 0, s.ports.Links.DeleteExpired},
		{Lockouts, s.config.Lockout, s.ports.Lockouts.DeleteBefore},
		{Counts, history.Lifetime, s.ports.Counts.DeleteExpired},
		{Tokens, gracePeriod, s.ports.Tokens.DeleteExpired},
		{Requests, 0, s.ports.Requests.DeleteExpired},
		{Families, gracePeriod, s.ports.Families.DeleteExpired},
		{Consents, 0, s.ports.Consents.DeleteExpired},
	}
	if s.config.Sessions > 0 {
		list = append(list,
			rule{Sessions, s.config.Sessions, s.ports.Sessions.DeleteExpired},
			rule{Devices, s.config.Sessions, s.ports.Devices.DeleteUnused})
	}
	if s.config.Audit > 0 {
		list = append(list, rule{AuditEvents, s.config.Audit, s.removeEvents})
	}
	return list
}

// Sweep removes expired records, counts the audit events of hours that are over, and returns what
// it removed, also together with an error. If one kind fails, it continues with the others. It
// stops if the context ends.
func (s *Sweeper) Sweep(ctx context.Context) ([]Removed, error) {
	ctx = transaction.Long(ctx)
	now := s.clock.Now()
	var removed []Removed
	var errs []error
	for _, r := range s.retentionRules() {
		if ctx.Err() != nil {
			return removed, errors.Join(append(errs, ctx.Err())...)
		}
		n, err := r.remove(ctx, now.Add(-r.kept))
		if n > 0 {
			removed = append(removed, Removed{r.kind, n})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.kind, err))
		}
	}
	if err := s.countEvents(ctx, now.Add(-auditing.ClockSkew)); err != nil {
		errs = append(errs, fmt.Errorf("count %s: %w", AuditEvents, err))
	}
	return removed, errors.Join(errs...)
}

// countEvents counts the hours of the audit log that ended before a time, so that its pages count
// only what is newer.
func (s *Sweeper) countEvents(ctx context.Context, until time.Time) error {
	for {
		counted, err := s.ports.Audit.CountHour(ctx, until)
		if err != nil || !counted {
			return err
		}
	}
}

func (s *Sweeper) removeEvents(ctx context.Context, before time.Time) (total int, err error) {
	for {
		n, err := s.ports.Audit.DeleteBefore(ctx, before, auditBatch)
		total += n
		if err != nil || n < auditBatch {
			return total, err
		}
	}
}

// Swept is the event of a sweep: what it removed, and its error if there was one.
type Swept struct {
	Removed []Removed
	Err     error
}

// Runner sweeps at intervals.
type Runner struct {
	interval time.Duration
	ports    RunnerPorts
}

// RunnerPorts are the dependencies of a Runner.
type RunnerPorts struct {
	Sweeper  *Sweeper
	Waiter   clock.Waiter
	Entropy  secrets.Entropy
	Reporter report.Reporter
}

// NewRunner returns a runner that sweeps once per interval of the configuration.
func NewRunner(c Config, p RunnerPorts) *Runner { return &Runner{interval: c.Interval, ports: p} }

// Run sweeps until the context ends. It returns at once if the interval is 0. The wait before the
// first sweep is a random part of the interval, so that instances that start together do not sweep
// at the same time.
func (r *Runner) Run(ctx context.Context) {
	if r.interval == 0 {
		return
	}
	wait := r.randomWait()
	for r.ports.Waiter.Wait(ctx, wait) {
		r.sweepOnce(ctx)
		wait = r.interval
	}
}

// randomWait returns a duration of at least 0 and less than the interval.
func (r *Runner) randomWait() time.Duration {
	var random [8]byte
	r.ports.Entropy.Fill(random[:])
	return time.Duration(binary.BigEndian.Uint64(random[:]) % uint64(r.interval))
}

// sweepOnce sweeps and reports the outcome. A sweep that fails because the service stops is not a
// failure.
func (r *Runner) sweepOnce(ctx context.Context) {
	removed, err := r.ports.Sweeper.Sweep(ctx)
	if ctx.Err() != nil {
		err = nil
	}
	r.ports.Reporter.Report(Swept{removed, err})
}
