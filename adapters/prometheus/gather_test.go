package prometheus

import (
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/test/must"
)

// nonzeroSamples returns the samples of a registry that are not 0, by name and label values. The
// sample of a histogram is its number of observations.
func nonzeroSamples(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for name, value := range allSamples(t, r) {
		if value != 0 {
			found[name] = value
		}
	}
	return found
}

// allSamples returns all samples of a registry, by name and label values.
func allSamples(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	must.Succeed(t, err)
	found := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := []string{family.GetName()}
			for _, label := range m.GetLabel() {
				name = append(name, label.GetValue())
			}
			found[strings.Join(name,
				" ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return found
}

// checkMetrics fails the test unless the samples that are not 0 are the wanted ones.
func checkMetrics(t *testing.T, r *prometheus.Registry, wanted map[string]float64) {
	t.Helper()
	if got := nonzeroSamples(t, r); !maps.Equal(got, wanted) {
		t.Errorf("metrics are %v, want %v", got, wanted)
	}
}
