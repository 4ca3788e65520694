package learning_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// scriptedTotals returns one error after the other.
type scriptedTotals struct {
	authstore.HistoryTotals
	errs  []error
	calls int
}

func (s *scriptedTotals) Gather(context.Context) (int, error) {
	s.calls++
	return 1, s.errs[s.calls-1]
}

// countingWaiter ends the context after a number of waits.
type countingWaiter struct {
	left int
	stop context.CancelFunc
}

func (w *countingWaiter) Wait(ctx context.Context, d time.Duration) bool {
	if w.left--; w.left < 0 || d != learning.Interval {
		w.stop()
	}
	return ctx.Err() == nil
}

type failures []error

func (f *failures) Report(event any) { *f = append(*f, event.(learning.GatherFailed).Err) }

func TestRunner(t *testing.T) {
	first, second, third := errors.New("first"), errors.New("second"), errors.New("third")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	totals, reported := &scriptedTotals{errs: []error{nil, first, second, nil, third, nil}}, failures{}
	learning.NewRunner(learning.RunnerPorts{
		Totals: totals, Waiter: &countingWaiter{6, stop}, Reporter: &reported,
	}).Run(ctx)
	if totals.calls != 6 || len(reported) != 2 || !errors.Is(reported[0], first) || !errors.Is(reported[1], third) {
		t.Errorf("%d calls, reported %v", totals.calls, reported)
	}
}

// stoppingTotals fail because the context ended.
type stoppingTotals struct {
	authstore.HistoryTotals
	stop context.CancelFunc
}

func (s stoppingTotals) Gather(ctx context.Context) (int, error) {
	s.stop()
	return 0, ctx.Err()
}

func TestTheEndIsNoFailure(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	reported := failures{}
	learning.NewRunner(learning.RunnerPorts{
		Totals: stoppingTotals{stop: stop}, Waiter: &countingWaiter{6, stop}, Reporter: &reported,
	}).Run(ctx)
	if len(reported) != 0 {
		t.Errorf("reported %v", reported)
	}
}
