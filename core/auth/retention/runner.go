package retention

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

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
