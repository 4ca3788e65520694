package prometheus

import (
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// values returns the samples of a registry that are not 0, by name and label values; of a histogram
// how many values it saw.
func values(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for name, value := range samples(t, r) {
		if value != 0 {
			found[name] = value
		}
	}
	return found
}

// samples returns all samples of a registry.
func samples(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := []string{family.GetName()}
			for _, label := range m.GetLabel() {
				name = append(name, label.GetValue())
			}
			found[strings.Join(name, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return found
}

// want fails the test unless the samples that are not 0 are these.
func want(t *testing.T, r *prometheus.Registry, wanted map[string]float64) {
	t.Helper()
	if got := values(t, r); !maps.Equal(got, wanted) {
		t.Errorf("metrics are %v, want %v", got, wanted)
	}
}
