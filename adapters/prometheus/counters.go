package prometheus

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Counters measures the calls to a counter store, and passes them on.
type Counters struct {
	counter.Store
	operations map[string]callMetrics // by counter.Operation
}

// NewCounters returns a store whose calls are measured.
func NewCounters(store counter.Store, r prometheus.Registerer) *Counters {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tollgate_counter_store_requests_total",
		Help: "Batches of hits that were sent to the counter store.",
	}, []string{"operation", "outcome"})
	times := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "tollgate_counter_store_request_duration_seconds",
		Help:    "Duration of a batch of hits in the counter store.",
		Buckets: []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
	}, []string{"operation"})
	r.MustRegister(requests, times)
	c := &Counters{store, map[string]callMetrics{}}
	for _, operation := range counter.Operations() {
		c.operations[operation] = callMetrics{
			took:        times.WithLabelValues(operation),
			done:        requests.WithLabelValues(operation, "done"),
			unavailable: requests.WithLabelValues(operation, "unavailable"),
			canceled:    requests.WithLabelValues(operation, "canceled"),
		}
	}
	return c
}

// Count implements counter.Store.
func (c *Counters) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, m counter.Mode) error {
	began := time.Now()
	err := c.Store.Count(ctx, hits, results, m)
	c.operations[counter.Operation(hits, m)].recordCall(ctx, began, err)
	return err
}

// callMetrics contains the metrics of one operation.
type callMetrics struct {
	took                        prometheus.Observer
	done, unavailable, canceled prometheus.Counter
}

func (c callMetrics) recordCall(ctx context.Context, began time.Time, err error) {
	c.took.Observe(time.Since(began).Seconds())
	switch {
	case err == nil:
		c.done.Inc()
	case errors.Is(ctx.Err(), context.Canceled): // canceled by the caller, not a failure of the store
		c.canceled.Inc()
	default:
		c.unavailable.Inc()
	}
}
