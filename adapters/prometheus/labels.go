package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// counts holds a counter for each value of a closed set. One of another value is not counted.
type labelCounters map[string]prometheus.Counter

// newCounts registers a counter with one label, for each of the label's values.
func newLabelCounters(r prometheus.Registerer, o prometheus.CounterOpts, label string, values ...string) labelCounters {
	vector := prometheus.NewCounterVec(o, []string{label})
	r.MustRegister(vector)
	c := make(labelCounters, len(values))
	for _, v := range values {
		c[v] = vector.WithLabelValues(v)
	}
	return c
}

// newTable returns the counters of a vector with two labels, by the first one's value.
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

// What the service fails at is told in the same words everywhere.
const (
	unavailable = "unavailable" // a dependency was away, or the service had too much to do
	failed      = "failed"      // a defect
)

// failure returns the outcome of an error that is nothing the caller did.
func failureLabel(err error) string {
	if fault.Is(err, fault.Unavailable) {
		return unavailable
	}
	return failed
}

// codeOf returns the code of an error; empty when it has none.
func faultCode(err error) fault.Code {
	if f, ok := fault.As(err); ok {
		return f.Code
	}
	return ""
}
