package prometheus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// counts is a counter store that counts two for each hit, or fails.
type labelCounters struct {
	counter.Store
	err error
}

func (c labelCounters) Add(_ context.Context, hits []counter.Hit, after []uint64) error {
	for i := range hits {
		after[i] = 2
	}
	return c.err
}

func (c labelCounters) AddUnlessOver(ctx context.Context, hits []counter.Hit, after []uint64) error {
	return c.Add(ctx, hits, after)
}

// TestCounterStore wants each call measured under its outcome, and its answer passed on.
func TestCounterStore(t *testing.T) {
	away := fault.New(fault.Unavailable, "", "the store is away")
	left, leave := context.WithCancel(t.Context())
	leave()
	late, end := context.WithTimeout(t.Context(), -time.Second)
	defer end()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"done":            {t.Context(), nil, "done"},
		"away":            {t.Context(), away, "unavailable"},
		"caller has left": {left, context.Canceled, "canceled"},
		"past a deadline": {late, away, "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			r := prometheus.New(prometheus.Build{})
			store := prometheus.NewCounters(labelCounters{err: c.err}, r)
			after := make([]uint64, 1)
			if err := store.Add(c.ctx, make([]counter.Hit, 1), after); !errors.Is(err, c.err) || after[0] != 2 {
				t.Errorf("Add: %v, %v", err, after)
			}
			for range 2 {
				if err := store.AddUnlessOver(c.ctx, make([]counter.Hit, 1), after); !errors.Is(err, c.err) {
					t.Errorf("AddUnlessOver: %v", err)
				}
			}
			contains(t, page(t, r),
				`tollgate_counter_store_requests_total{operation="add",outcome="`+c.want+`"} 1`,
				`tollgate_counter_store_requests_total{operation="add_unless_over",outcome="`+c.want+`"} 2`,
				`tollgate_counter_store_request_duration_seconds_count{operation="add"} 1`,
				`tollgate_counter_store_request_duration_seconds_count{operation="add_unless_over"} 2`,
			)
		})
	}
}

// verdict is a throttle that always answers the same.
type verdict struct {
	throttle.Throttle
	allowed bool
	err     error
}

func (v verdict) Try(context.Context, throttle.Scope, string) (throttle.Verdict, error) {
	return throttle.Verdict{Allowed: v.allowed, Limit: 7}, v.err
}

// TestThrottle wants refusals counted by scope, and nothing else.
func TestThrottle(t *testing.T) {
	for name, c := range map[string]struct {
		answer verdict
		want   string
	}{
		"refused": {verdict{}, "1"},
		"allowed": {verdict{allowed: true}, "0"},
		"failed":  {verdict{err: fault.New(fault.Unavailable, "", "away")}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := prometheus.New(prometheus.Build{})
			v, err := prometheus.NewThrottle(c.answer, r).Try(t.Context(), throttle.StepUpUser, "someone")
			if !errors.Is(err, c.answer.err) || v.Allowed != c.answer.allowed || v.Limit != 7 {
				t.Errorf("answered %+v, %v", v, err)
			}
			contains(t, page(t, r), `tollgate_throttled_total{scope="step_up"} `+c.want,
				`tollgate_throttled_total{scope="auth"} 0`, `tollgate_throttled_total{scope="api"} 0`,
				`tollgate_throttled_total{scope="registry"} 0`, `tollgate_throttled_total{scope="notice"} 0`)
		})
	}
}
