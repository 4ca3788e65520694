package prometheus

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Counters measures the calls to a counter store, and passes them on.
type Counters struct {
	counter.Store
	operations map[string]callMetrics // by counter.Operation
}

// NewCounters returns a store whose calls are measured.
func NewCounters(store counter.Store, r prometheus.Registerer) *Counters {
	requests := newCounters(r, "tollgate_counter_store_requests_total",
		"Batches of hits that were sent to the counter store.", "operation", "outcome")
	times := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "tollgate_counter_store_request_duration_seconds",
		Help:    "Duration of a batch of hits in the counter store.",
		Buckets: []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
	}, []string{"operation"})
	r.MustRegister(times)
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

// labelCounters contains a counter for each value of a fixed set. Other values are not counted.
type labelCounters map[string]prometheus.Counter

// newCounters registers a counter with labels.
func newCounters(r prometheus.Registerer, name, help string, labels ...string) *prometheus.CounterVec {
	vector := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.MustRegister(vector)
	return vector
}

// newGauge registers a gauge.
func newGauge(r prometheus.Registerer, name, help string) prometheus.Gauge {
	return newGauges(r, name, help).WithLabelValues()
}

// newGauges registers a gauge with labels.
func newGauges(r prometheus.Registerer, name, help string, labels ...string) *prometheus.GaugeVec {
	vector := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	r.MustRegister(vector)
	return vector
}

// newGaugeFunc registers a gauge whose value is read when it is shown.
func newGaugeFunc(r prometheus.Registerer, name, help string, value func() float64) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// newLabelCounters registers a counter with one label and the given values.
func newLabelCounters(r prometheus.Registerer, name, help, label string, values ...string) labelCounters {
	vector := newCounters(r, name, help, label)
	c := make(labelCounters, len(values))
	for _, v := range values {
		c[v] = vector.WithLabelValues(v)
	}
	return c
}

// newTable returns the counters of a vector with two labels, by the value of the first label.
func newTable(vector *prometheus.CounterVec, first, second []string) map[string]labelCounters {
	table := make(map[string]labelCounters, len(first))
	for _, a := range first {
		table[a] = make(labelCounters, len(second))
		for _, b := range second {
			table[a][b] = vector.WithLabelValues(a, b)
		}
	}
	return table
}

func (c labelCounters) addTo(value string, n int) {
	if counter, known := c[value]; known {
		counter.Add(float64(n))
	}
}

func (c labelCounters) increment(value string) { c.addTo(value, 1) }

// Outcomes of failures, the same in all metrics.
const (
	unavailable = "unavailable" // a dependency did not answer, or the service was overloaded
	failed      = "failed"      // an internal error
)

// failureLabel returns the outcome of an error that the caller did not cause.
func failureLabel(err error) string {
	if fault.Is(err, fault.Unavailable) {
		return unavailable
	}
	return failed
}

// faultCode returns the code of an error, or an empty code.
func faultCode(err error) fault.Code {
	if f, ok := fault.As(err); ok {
		return f.Code
	}
	return ""
}
