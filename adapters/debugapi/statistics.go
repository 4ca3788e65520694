package debugapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
)

// Statistics exports the statistics of the rate limit service as text and as metrics. It is safe
// for concurrent use.
type Statistics struct {
	statistics *statistics.Statistics
	mapped     *mappedMetrics // nil without a mapping
	times      prometheus.Collector
	took       prometheus.Observer
	unit       time.Duration // of the times that took records
}

// NewStatistics returns statistics with the metric names of the configuration. An error names the
// setting.
func NewStatistics(c PrometheusConfig, s *statistics.Statistics, log *logrus.Entry) (*Statistics, error) {
	if c.Mapper == "" {
		return statisticsWithoutMapping(c, s), nil
	}
	m, err := readMapping(c.Mapper)
	if err != nil {
		return nil, fmt.Errorf("PROMETHEUS_MAPPER_YAML: %w", err)
	}
	named, err := newMappedMetrics(m, s, log)
	if err != nil {
		return nil, fmt.Errorf("PROMETHEUS_MAPPER_YAML: %s: %w", c.Mapper, err)
	}
	return &Statistics{
		statistics: s, mapped: named, times: discardTimer{}, took: named.timer, unit: time.Millisecond,
	}, nil
}

func statisticsWithoutMapping(c PrometheusConfig, s *statistics.Statistics) *Statistics {
	// From 50 µs (contract L-46).
	buckets := []float64{
		.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5,
	}
	help, unit := "How long rate limit calls took.", time.Second
	if c.Milliseconds {
		help, unit = "How long rate limit calls took, in milliseconds.", time.Millisecond
		for i := range buckets {
			buckets[i] = math.Round(buckets[i]*1e5) / 100
		}
	}
	times := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ratelimit_service_response_time_seconds", Help: help, Buckets: buckets,
	}, []string{"grpc_method"})
	return &Statistics{statistics: s, times: times, took: times.WithLabelValues("ShouldRateLimit"), unit: unit}
}

// Measure registers the statistics as metrics.
func (s *Statistics) Measure(r prometheus.Registerer) { r.MustRegister(s) }

// RecordCall counts a call of ShouldRateLimit.
func (s *Statistics) RecordCall(took time.Duration) {
	s.statistics.RecordCall(took)
	s.took.Observe(float64(took) / float64(s.unit))
}

// Describe implements prometheus.Collector. It describes nothing, because the metrics depend on the
// rules.
func (s *Statistics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s *Statistics) Collect(to chan<- prometheus.Metric) {
	if s.mapped != nil {
		s.mapped.collect(to)
		return
	}
	s.times.Collect(to)
	for _, c := range s.statistics.Service() {
		var label prometheus.Labels
		if c.Label != "" {
			label = prometheus.Labels{c.Label: c.LabelValue}
		}
		desc := prometheus.NewDesc(c.Metric, c.Help, nil, label)
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(c.Value))
	}
	stats := statistics.Stats()
	descs := each.Map(stats, func(stat statistics.Stat) *prometheus.Desc {
		return prometheus.NewDesc(statistics.RuleMetric(stat), stat.Help(), ruleLabelNames(), nil)
	})
	totals := s.statistics.Totals()
	for i := range totals {
		labels := labelPairs(&totals[i])
		for j, stat := range stats {
			to <- &ruleMetric{descs[j], labels, float64(totals[i].Values[stat])}
		}
	}
}

// ruleMetric is one statistic of a rule. The statistics of a rule share their labels, because there
// may be 100,000 rules.
type ruleMetric struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	value  float64
}

func (m *ruleMetric) Desc() *prometheus.Desc { return m.desc }

func (m *ruleMetric) Write(into *dto.Metric) error {
	into.Label = m.labels
	into.Counter = &dto.Counter{Value: &m.value}
	return nil
}

// ruleLabelNames returns the labels of rules in the order that Prometheus requires: the domain, the
// first two levels as in dashboards of the Envoy service, and the path.
func ruleLabelNames() []string { return []string{"domain", "key1", "key2", "rule"} }

func labelPairs(t *statistics.Total) []*dto.LabelPair {
	values := [...]string{t.Domain, t.Key1, t.Key2, t.Rule}
	pairs := make([]*dto.LabelPair, len(values))
	for i, name := range ruleLabelNames() {
		pairs[i] = &dto.LabelPair{Name: &name, Value: &values[i]}
	}
	return pairs
}

// writeText writes all counters as sorted lines "name: value".
func (s *Statistics) writeText(w http.ResponseWriter, _ *http.Request) {
	setTextHeaders(w)
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
	_, _ = w.Write([]byte(strings.Join(lines, ""))) // the client may have disconnected
}

// PrometheusConfig holds the settings of metrics and of the listener for Prometheus. The debug
// listener always serves the same page.
type PrometheusConfig struct {
	Enabled bool   `env:"USE_PROMETHEUS" envDefault:"false" desc:"add a listener for Prometheus at PROMETHEUS_ADDR; the debug listener serves metrics in any case"`
	Address string `env:"PROMETHEUS_ADDR" envDefault:":9090" desc:"address that the listener for Prometheus listens on, host:port; port 0 = any free port"`
	Path    string `env:"PROMETHEUS_PATH" envDefault:"/metrics" desc:"path of the metrics on the listener for Prometheus"`

	Mapper       string `readBy:"ratelimit" env:"PROMETHEUS_MAPPER_YAML" desc:"file with the Prometheus names of rate limit statistics, in the form of the statsd exporter; read at start; default: the service's own names and labels"`
	Milliseconds bool   `readBy:"ratelimit" env:"PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS" envDefault:"false" desc:"report ratelimit_service_response_time_seconds in milliseconds, as older versions of the Envoy rate limit service do; no effect with PROMETHEUS_MAPPER_YAML"`
}

// Validate returns an error that names the first malformed setting.
func (c PrometheusConfig) Validate() error {
	if err := checkAddress(c.Address); err != nil {
		return fmt.Errorf("PROMETHEUS_ADDR: %w", err)
	}
	if !strings.HasPrefix(c.Path, "/") {
		return fmt.Errorf("PROMETHEUS_PATH: %q does not begin with /", c.Path)
	}
	return nil
}

func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not host:port", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return errors.New(port + " is not a port number from 0 to 65535")
	}
	return nil
}

// maxConnections is the maximum number of open connections of each listener.
const maxConnections = 1000

// OpenPrometheus opens the listener for Prometheus, which serves only the metrics. It serves no
// requests before Serve. The cleanup closes it.
func OpenPrometheus(ctx context.Context, c PrometheusConfig, d Ports) (*Server, func(), error) {
	s, cleanup, err := newServer(ctx, c.Address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != c.Path {
			http.NotFound(w, r)
			return
		}
		d.Metrics.ServeHTTP(w, r)
	}), httpconn.ListenerOptions{Name: "prometheus", Max: maxConnections, Metrics: d.Registerer, Log: d.Log})
	if err != nil {
		return nil, nil, fmt.Errorf("PROMETHEUS_ADDR: %w", err)
	}
	return s, cleanup, nil
}
