package debugapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
)

// Statistics shows the statistics of the rate limit service when they are asked
// for, as text and as metrics. It is safe for concurrent use.
type Statistics struct {
	statistics *statistics.Statistics
	times      *prometheus.HistogramVec
	took       prometheus.Observer
}

// NewStatistics shows statistics.
func NewStatistics(s *statistics.Statistics) *Statistics {
	times := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ratelimit_service_response_time_seconds",
		Help: "How long rate limit calls took.",
		// From 50 µs (decisions 3.6).
		Buckets: []float64{
			.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5,
		},
	}, []string{"grpc_method"})
	return &Statistics{statistics: s, times: times, took: times.WithLabelValues("ShouldRateLimit")}
}

// Measure adds the statistics to the metrics of r.
func (s *Statistics) Measure(r prometheus.Registerer) { r.MustRegister(s, s.times) }

// Answered counts a call of ShouldRateLimit.
func (s *Statistics) Answered(took time.Duration) {
	s.statistics.Answered(took)
	s.took.Observe(took.Seconds())
}

// Describe implements prometheus.Collector. What is collected depends on the
// rules, so nothing is promised.
func (s *Statistics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s *Statistics) Collect(to chan<- prometheus.Metric) {
	for _, c := range s.statistics.Service() {
		var label prometheus.Labels
		if c.Label != "" {
			label = prometheus.Labels{c.Label: c.LabelValue}
		}
		desc := prometheus.NewDesc(c.Metric, c.Help, nil, label)
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(c.Value))
	}
	stats := statistics.Stats()
	descs := make([]*prometheus.Desc, len(stats))
	for i, stat := range stats {
		descs[i] = prometheus.NewDesc(statistics.RuleMetric(stat), stat.Help(), ruleLabels(), nil)
	}
	totals := s.statistics.Totals()
	for i := range totals {
		labels := labelsOf(&totals[i])
		for j, stat := range stats {
			to <- &ruleMetric{descs[j], labels, float64(totals[i].Values[stat])}
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
func (s *Statistics) show(w http.ResponseWriter, _ *http.Request) {
	plain(w)
	var lines []string
	add := func(name string, value uint64) {
		lines = append(lines, fmt.Sprintf("%s: %d\n", name, value))
	}
	for _, c := range s.statistics.Service() {
		add(c.Name, c.Value)
	}
	totals := s.statistics.Totals()
	for i := range totals {
		for _, stat := range statistics.Stats() {
			add(totals[i].Name(stat), totals[i].Values[stat])
		}
	}
	slices.Sort(lines)
	_, _ = w.Write([]byte(strings.Join(lines, ""))) // the client may have gone
}
