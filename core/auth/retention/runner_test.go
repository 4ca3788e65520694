package retention_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
)

// testWaiter keeps how long the runner waits, and ends the context after a number of waits.
type testWaiter struct {
	waits []time.Duration
	left  int
	stop  context.CancelFunc
}

func (w *testWaiter) Wait(ctx context.Context, d time.Duration) bool {
	w.waits = append(w.waits, d)
	if w.left--; w.left < 0 {
		w.stop()
	}
	return ctx.Err() == nil
}

// testReporter keeps what the runner reports.
type testReporter struct {
	removed  [][]retention.Removed
	failures []error
}

func (r *testReporter) Report(event any) {
	swept := event.(retention.Swept)
	r.removed = append(r.removed, swept.Removed)
	if swept.Err != nil {
		r.failures = append(r.failures, swept.Err)
	}
}

// constantEntropy fills every byte with the same value.
type constantEntropy byte

func (e constantEntropy) Fill(p []byte) {
	for i := range p {
		p[i] = byte(e)
	}
}

// runSweeps runs a runner for a number of sweeps.
func (fx *fixture) runSweeps(interval time.Duration, sweeps int) (*testWaiter, *testReporter) {
	ctx, stop := context.WithCancel(fx.t.Context())
	defer stop()
	c := retention.Config{Sessions: 7 * day, Interval: interval}
	waiter, reporter := &testWaiter{left: sweeps, stop: stop}, &testReporter{}
	retention.NewRunner(c, retention.RunnerPorts{
		Sweeper: retention.New(c, fx.stores, clocktest.NewManual(noon)), Waiter: waiter, Entropy: constantEntropy(0xff),
		Reporter: reporter,
	}).Run(ctx)
	return waiter, reporter
}

func TestRunnerSweepsOncePerInterval(t *testing.T) {
	fx := newFixture(t)
	fx.addSignIn("old", 30*day)
	waiter, reporter := fx.runSweeps(time.Hour, 2)
	if len(waiter.waits) != 3 || waiter.waits[0] < 0 || waiter.waits[0] >= time.Hour ||
		!slices.Equal(waiter.waits[1:], []time.Duration{time.Hour, time.Hour}) {
		t.Errorf("the runner waited %v", waiter.waits)
	}
	if len(reporter.removed) != 2 || len(reporter.removed[0]) == 0 || len(reporter.removed[1]) != 0 ||
		len(reporter.failures) != 0 {
		t.Errorf("the runner reported %v and %v", reporter.removed, reporter.failures)
	}
}

func TestRunnerReportsFailures(t *testing.T) {
	fx := newFixture(t)
	fx.stores.Lockouts = brokenLockouts{}
	_, reporter := fx.runSweeps(time.Hour, 1)
	if len(reporter.failures) != 1 || !errors.Is(reporter.failures[0], errAway) {
		t.Errorf("the runner reported %v", reporter.failures)
	}
}

func TestRunnerWithoutInterval(t *testing.T) {
	if waiter, reporter := newFixture(t).runSweeps(0, 1); len(waiter.waits) != 0 || len(reporter.removed) != 0 {
		t.Errorf("the runner waited %v and reported %v", waiter.waits, reporter.removed)
	}
}
