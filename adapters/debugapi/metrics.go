package debugapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
)

// Metrics shows the statistics of the rate limit service when they are asked
// for. It is safe for concurrent use.
type Metrics struct {
	statistics *statistics.Statistics
	registry   *prometheus.Registry
	took       prometheus.Observer
}

// NewMetrics returns the statistics, and those of the process.
func NewMetrics(s *statistics.Statistics) *Metrics {
	m := &Metrics{statistics: s, registry: prometheus.NewRegistry()}
	times := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ratelimit_service_response_time_seconds",
		Help: "How long rate limit calls took.",
		// From 50 µs (decisions 3.6).
		Buckets: []float64{
			.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5,
		},
	}, []string{"grpc_method"})
	m.took = times.WithLabelValues("ShouldRateLimit")
	m.registry.MustRegister(m, times, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Registry takes further collectors.
func (m *Metrics) Registry() prometheus.Registerer { return m.registry }

// Answered counts a call of ShouldRateLimit.
func (m *Metrics) Answered(took time.Duration) {
	m.statistics.Answered(took)
	m.took.Observe(took.Seconds())
}

func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Describe implements prometheus.Collector. What is collected depends on the
// rules, so nothing is promised.
func (m *Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.statistics.Service() {
		var label prometheus.Labels
		if c.Label != "" {
			label = prometheus.Labels{c.Label: c.LabelValue}
		}
		desc := prometheus.NewDesc(c.Metric, c.Help, nil, label)
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(c.Value))
	}
	stats := statistics.Stats()
	descs := make([]*prometheus.Desc, len(stats))
	for i, s := range stats {
		descs[i] = prometheus.NewDesc(statistics.RuleMetric(s), s.Help(), ruleLabels(), nil)
	}
	totals := m.statistics.Totals()
	for i := range totals {
		labels := labelsOf(&totals[i])
		for j, s := range stats {
			to <- &ruleMetric{descs[j], labels, float64(totals[i].Values[s])}
		}
	}
}

// ruleMetric is one statistic of a rule. All of one rule share their labels:
// there may be 100,000 rules.
type ruleMetric struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	value  float64
}

// Desc implements prometheus.Metric.
func (m *ruleMetric) Desc() *prometheus.Desc { return m.desc }

// Write implements prometheus.Metric.
func (m *ruleMetric) Write(into *dto.Metric) error {
	into.Label = m.labels
	into.Counter = &dto.Counter{Value: &m.value}
	return nil
}

// ruleLabels tell rules apart, sorted as Prometheus wants them: the domain, the
// first two levels as dashboards of the Envoy service have them, and the path.
func ruleLabels() []string { return []string{"domain", "key1", "key2", "rule"} }

func labelsOf(t *statistics.Total) []*dto.LabelPair {
	values := [...]string{t.Domain, t.Key1, t.Key2, t.Rule}
	pairs := make([]*dto.LabelPair, len(values))
	for i, name := range ruleLabels() {
		pairs[i] = &dto.LabelPair{Name: &name, Value: &values[i]}
	}
	return pairs
}

// show prints all counters as "name: value" lines, sorted.
func (m *Metrics) show(w http.ResponseWriter, _ *http.Request) {
	plain(w)
	var lines []string
	add := func(name string, value uint64) {
		lines = append(lines, fmt.Sprintf("%s: %d\n", name, value))
	}
	for _, c := range m.statistics.Service() {
		add(c.Name, c.Value)
	}
	totals := m.statistics.Totals()
	for i := range totals {
		for _, s := range statistics.Stats() {
			add(totals[i].Name(s), totals[i].Values[s])
		}
	}
	slices.Sort(lines)
	_, _ = w.Write([]byte(strings.Join(lines, ""))) // the client may have gone
}
