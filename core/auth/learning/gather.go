package learning

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/report"
)

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
