// Package learning fills the counts of the history: a Learner from recorded sign-ins, and a Runner
// at intervals with what live sign-ins have taught about everybody. A Learner keeps what it learns
// in memory until all of the record is read, so that a record with a mistake changes nothing. Live
// sign-ins do not change the counts of everybody themselves, so that they do not wait for each
// other. Package replay decides what is learnt from which sign-in.
package learning

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Ports are the dependencies of a Learner.
type Ports struct {
	Accounts authstore.Accounts
	Totals   authstore.HistoryTotals
	Clock    clock.Clock
}

// Person is a person as a record names them: by the id of an account, by an e-mail address or by
// both.
type Person struct {
	ID    auth.UserID
	Email auth.Email
}

// Summary is what was learnt.
type Summary struct {
	SignIns        int // that were learnt from
	People         int // of these sign-ins
	UnknownSignIns int // that would have been learnt from, of people without an account
	UnknownPeople  int
}

// Learner learns from one record. It is used by one goroutine.
type Learner struct {
	ports    Ports
	accounts map[Person]auth.UserID // empty for people without an account
	people   map[auth.UserID]history.Table
	everyone history.Table
	summary  Summary
}

// New returns a learner that has learnt nothing.
func New(p Ports) *Learner {
	return &Learner{
		ports: p, accounts: map[Person]auth.UserID{}, people: map[auth.UserID]history.Table{},
		everyone: history.Table{},
	}
}

// Add learns from a sign-in of a person. Without additions it does nothing.
func (l *Learner) Add(ctx context.Context, p Person, additions []history.Addition, at time.Time) error {
	if len(additions) == 0 {
		return nil
	}
	user, err := l.findAccount(ctx, p)
	switch {
	case err != nil:
		return err
	case user == "":
		l.summary.UnknownSignIns++
		return nil
	}
	own := l.people[user]
	if own == nil {
		own = history.Table{}
		l.people[user] = own
		l.summary.People++
	}
	l.summary.SignIns++
	history.Counts{Person: own, Everyone: l.everyone}.Apply(additions, at)
	return nil
}

// findAccount returns the id of the account of a person, or an empty id if it does not exist.
func (l *Learner) findAccount(ctx context.Context, p Person) (auth.UserID, error) {
	if user, ok := l.accounts[p]; ok {
		return user, nil
	}
	a, err := auth.Account{}, error(fault.New(fault.NotFound, "no id"))
	if p.ID != "" {
		a, err = l.ports.Accounts.Get(ctx, p.ID)
	}
	if fault.Is(err, fault.NotFound) && p.Email != "" {
		a, err = l.ports.Accounts.ByEmail(ctx, p.Email)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	if a.ID == "" {
		l.summary.UnknownPeople++
	}
	l.accounts[p] = a.ID
	return a.ID, nil
}

// Store adds what was learnt to the stored counts, one person after the other, and returns the
// summary. Values that have ended by now are left out. If it fails, what was stored before stays.
func (l *Learner) Store(ctx context.Context) (Summary, error) {
	ctx = transaction.Long(ctx)
	for user, table := range l.people {
		if err := l.ports.Totals.Merge(ctx, user, history.Counts{Person: l.living(table)}); err != nil {
			return Summary{}, err
		}
	}
	if err := l.ports.Totals.Merge(ctx, "", history.Counts{Everyone: l.living(l.everyone)}); err != nil {
		return Summary{}, err
	}
	return l.summary, nil
}

// living returns the counts that have not ended.
func (l *Learner) living(t history.Table) history.Table {
	now, kept := l.ports.Clock.Now(), make(history.Table, len(t))
	for v, c := range t {
		if c.Seen(now) {
			kept[v] = c
		}
	}
	return kept
}

// Interval is the time between two calls of Gather: so late do sign-ins count for everybody.
const Interval = 5 * time.Second

// GatherFailed is the event of counts that could not be gathered. They stay stored, and the next
// attempt follows.
type GatherFailed struct{ Err error }

// RunnerPorts are the dependencies of a Runner.
type RunnerPorts struct {
	Totals   authstore.HistoryTotals
	Waiter   clock.Waiter
	Reporter report.Reporter
}

// Runner gathers at intervals. Several Runners may work on the same records at the same time.
type Runner struct{ ports RunnerPorts }

// NewRunner returns a runner.
func NewRunner(p RunnerPorts) *Runner { return &Runner{ports: p} }

// Run gathers until the context ends. Of failures in a row, it reports the first.
func (r *Runner) Run(ctx context.Context) {
	failing := false
	for r.ports.Waiter.Wait(ctx, Interval) {
		_, err := r.ports.Totals.Gather(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			r.ports.Reporter.Report(GatherFailed{err})
		}
		failing = err != nil
	}
}
