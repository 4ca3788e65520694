package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// labelCounters contains a counter for each value of a fixed set. Other values are not counted.
type labelCounters map[string]prometheus.Counter

// newLabelCounters registers a counter with one label and the given values.
func newLabelCounters(r prometheus.Registerer, o prometheus.CounterOpts, label string, values ...string) labelCounters {
	vector := prometheus.NewCounterVec(o, []string{label})
	r.MustRegister(vector)
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
