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

// fixedCounters is a counter store that returns the count 2 for each hit, and the error err.
type fixedCounters struct {
	counter.Store
	err error
}

func (c fixedCounters) Count(_ context.Context, hits []counter.Hit, results []counter.Result, _ counter.Mode) error {
	for i := range hits {
		results[i].Count = 2
	}
	return c.err
}

// TestCounterStore checks that each call is counted with its outcome, and that the decorator
// returns the counts and the error of the store.
func TestCounterStore(t *testing.T) {
	unavailable := fault.New(fault.Unavailable, "the store is not available")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, end := context.WithTimeout(t.Context(), -time.Second)
	defer end()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"the store answers":                {t.Context(), nil, "done"},
		"the store is not available":       {t.Context(), unavailable, "unavailable"},
		"the caller has canceled the call": {canceled, context.Canceled, "canceled"},
		"the deadline has passed":          {expired, unavailable, "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			r := prometheus.New(prometheus.Build{})
			store := prometheus.NewCounters(fixedCounters{err: c.err}, r)
			after := make([]counter.Result, 1)
			if err := store.Count(c.ctx, make([]counter.Hit, 1), after, counter.Each); !errors.Is(err, c.err) ||
				after[0].Count != 2 {
				t.Errorf("Count returns error %v and counts %v, want error %v and counts [2]", err, after, c.err)
			}
			for range 2 {
				if err := store.Count(c.ctx, make([]counter.Hit, 1), after, counter.AllOrNone); !errors.Is(err, c.err) {
					t.Errorf("Count returns error %v, want %v", err, c.err)
				}
			}
			checkSamples(t, readPage(t, r),
				`tollgate_counter_store_requests_total{operation="add",outcome="`+c.want+`"} 1`,
				`tollgate_counter_store_requests_total{operation="add_unless_over",outcome="`+c.want+`"} 2`,
				`tollgate_counter_store_request_duration_seconds_count{operation="add"} 1`,
				`tollgate_counter_store_request_duration_seconds_count{operation="add_unless_over"} 2`,
			)
		})
	}
}

// fixedThrottle is a throttle that always returns the same verdict and error.
type fixedThrottle struct {
	throttle.Throttle
	allowed bool
	err     error
}

func (f fixedThrottle) Try(context.Context, throttle.Scope, string) (throttle.Verdict, error) {
	return throttle.Verdict{Allowed: f.allowed, Limit: 7}, f.err
}

// TestThrottle checks that refusals are counted by scope, and that allowed and failed calls are not
// counted.
func TestThrottle(t *testing.T) {
	for name, c := range map[string]struct {
		answer fixedThrottle
		want   string
	}{
		"a refusal is counted":           {fixedThrottle{}, "1"},
		"an allowed call is not counted": {fixedThrottle{allowed: true}, "0"},
		"a failed call is not counted":   {fixedThrottle{err: fault.New(fault.Unavailable, "not available")}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := prometheus.New(prometheus.Build{})
			v, err := prometheus.NewThrottle(c.answer, r).Try(t.Context(), throttle.StepUpUser, "user")
			if !errors.Is(err, c.answer.err) || v.Allowed != c.answer.allowed || v.Limit != 7 {
				t.Errorf("Try returns %+v and error %v", v, err)
			}
			checkSamples(t, readPage(t, r), `tollgate_throttled_total{scope="step_up"} `+c.want,
				`tollgate_throttled_total{scope="auth"} 0`, `tollgate_throttled_total{scope="api"} 0`,
				`tollgate_throttled_total{scope="registry"} 0`, `tollgate_throttled_total{scope="notice"} 0`,
				`tollgate_throttled_total{scope="publisher_address"} 0`,
				`tollgate_throttled_total{scope="publisher_domain"} 0`)
		})
	}
}
