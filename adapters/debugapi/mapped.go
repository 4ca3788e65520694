package debugapi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/statsd_exporter/pkg/mapper"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
)

// idleSeries is how long a series that nothing is counted on stays, when there are more series than
// statistics: those of values that were forgotten. It is as long as the values are kept themselves.
const maxIdle = time.Hour

// maxRefused bounds how many names that cannot be shown are remembered and logged.
const maxRejected = 100

// ownPrefixes begin the names of metrics that are not statistics of the rate limit service.
var ownPrefixes = []string{"tollgate_", "go_", "process_", "promhttp_"}

// mapped shows the counters under the names that a mapping gives them, and adds up what it gives one
// name. It counts what they grew by, so that a sum does not shrink when a part of it is forgotten.
type mappedMetrics struct {
	mapper *mapper.MetricMapper
	log    *logrus.Entry
	timer  timer
	now    func() time.Time

	mutex    sync.Mutex // held for the fields below
	changes  *statistics.Changes
	series   map[string]*mappedSeries
	metrics  map[string]*mappedMetric
	rejected map[string]struct{}
}

// mappedMetric is what the series of one metric share.
type mappedMetric struct {
	help   string
	series int
}

// mappedSeries is a metric with its labels.
type mappedSeries struct {
	metric  string
	desc    *prometheus.Desc
	values  []string // of the labels
	value   float64
	touched time.Time
	ttl     time.Duration // 0 for none
}

// Observe observes a time in milliseconds.
func (t timer) Observe(ms float64) { t.Observer.Observe(ms * t.scale) }

// timer is what the times of calls are observed by.
type timer struct {
	prometheus.Collector
	prometheus.Observer
	name  string
	scale float64
}

func newMappedMetrics(m *mapper.MetricMapper, s *statistics.Statistics, log *logrus.Entry) (*mappedMetrics, error) {
	t := newTimer(m)
	if isReserved(t.name) {
		return nil, fmt.Errorf("response times are named %s: %w", t.name, errReserved)
	}
	return &mappedMetrics{
		mapper: m, log: log, timer: t, now: time.Now, changes: s.NewChanges(),
		series: map[string]*mappedSeries{}, metrics: map[string]*mappedMetric{}, rejected: map[string]struct{}{},
	}, nil
}

var errReserved = errors.New("metrics of the process have names that begin so")

func isReserved(metric string) bool {
	return slices.ContainsFunc(ownPrefixes, func(own string) bool { return strings.HasPrefix(metric, own) })
}

// newTimer returns the histogram or summary that the mapping makes of response times.
func newTimer(m *mapper.MetricMapper) timer {
	found, labels, present := m.GetMapping(statistics.ResponseTime, mapper.MetricTypeObserver)
	t := timer{name: mapper.EscapeMetricName(statistics.ResponseTime), scale: 1}
	if !present {
		found, labels = &mapper.MetricMapping{}, nil
	} else {
		t.name = mapper.EscapeMetricName(found.Name)
	}
	if found.Action == mapper.ActionTypeDrop || t.name == "" {
		return timer{Collector: discardTimer{}, Observer: discardTimer{}}
	}
	if found.Scale.Set {
		t.scale = found.Scale.Val
	}
	help := cmp.Or(found.HelpText, "How long rate limit calls took.")
	if cmp.Or(found.ObserverType, m.Defaults.ObserverType) == mapper.ObserverTypeHistogram {
		h := prometheus.NewHistogram(histogramOptions(m, found, prometheus.HistogramOpts{Name: t.name, Help: help, ConstLabels: labels}))
		t.Collector, t.Observer = h, h
		return t
	}
	s := prometheus.NewSummary(summaryOptions(m, found, prometheus.SummaryOpts{Name: t.name, Help: help, ConstLabels: labels}))
	t.Collector, t.Observer = s, s
	return t
}

func histogramOptions(m *mapper.MetricMapper, found *mapper.MetricMapping, o prometheus.HistogramOpts) prometheus.HistogramOpts {
	wanted, defaults := found.HistogramOptions, m.Defaults.HistogramOptions
	if wanted == nil {
		wanted = &mapper.HistogramOptions{}
	}
	o.Buckets = wanted.Buckets
	if len(o.Buckets) == 0 {
		o.Buckets = defaults.Buckets
	}
	o.NativeHistogramBucketFactor = cmp.Or(wanted.NativeHistogramBucketFactor, defaults.NativeHistogramBucketFactor)
	o.NativeHistogramMaxBucketNumber = cmp.Or(wanted.NativeHistogramMaxBuckets, defaults.NativeHistogramMaxBuckets)
	return o
}

func summaryOptions(m *mapper.MetricMapper, found *mapper.MetricMapping, o prometheus.SummaryOpts) prometheus.SummaryOpts {
	wanted := found.SummaryOptions
	if wanted == nil {
		wanted = &m.Defaults.SummaryOptions
	}
	o.Objectives = map[float64]float64{}
	for _, q := range wanted.Quantiles {
		o.Objectives[q.Quantile] = q.Error
	}
	o.MaxAge, o.AgeBuckets, o.BufCap = wanted.MaxAge, wanted.AgeBuckets, wanted.BufCap
	return o
}

// collect takes what was counted since the last time, and shows all there is.
func (m *mappedMetrics) collect(to chan<- prometheus.Metric) {
	m.timer.Collect(to)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	now := m.now()
	for name, by := range m.changes.Counters() {
		m.addToSeries(name, by, now)
	}
	names := m.changes.Len()
	for key, s := range m.series {
		idle := now.Sub(s.touched)
		if s.ttl > 0 && idle > s.ttl || idle > maxIdle && len(m.series) > names {
			m.removeSeries(key, s)
			continue
		}
		metric, err := prometheus.NewConstMetric(s.desc, prometheus.CounterValue, s.value, s.values...)
		if err == nil { // it was tried when the series was made
			to <- metric
		}
	}
}

// add counts on the series that a name belongs to.
func (m *mappedMetrics) addToSeries(name string, by uint64, now time.Time) {
	found, labels, present := m.mapper.GetMapping(name, mapper.MetricTypeCounter)
	if !present {
		found, labels = &mapper.MetricMapping{Name: name, Ttl: m.mapper.Defaults.Ttl}, nil
	}
	if found.Action == mapper.ActionTypeDrop {
		return
	}
	metric := mapper.EscapeMetricName(found.Name)
	names := slices.Sorted(maps.Keys(labels))
	values := make([]string, len(names))
	for i, label := range names {
		values[i] = labels[label]
	}
	key := strings.Join(slices.Concat([]string{metric}, names, values), "\xff")
	s := m.series[key]
	if s == nil {
		var err error
		if s, err = m.newSeries(metric, cmp.Or(found.HelpText, "Statistics of the rate limit service."), names, values); err != nil {
			m.logRejected(metric, err)
			return
		}
		s.ttl = found.Ttl
		m.series[key] = s
	}
	scale := 1.0
	if found.Scale.Set {
		scale = found.Scale.Val
	}
	s.value += float64(by) * scale
	s.touched = now
}

// newSeries returns a series, or why it cannot be shown.
func (m *mappedMetrics) newSeries(metric, help string, names, values []string) (*mappedSeries, error) {
	rest, ofTimer := strings.CutPrefix(metric, m.timer.name)
	switch {
	case metric == "":
		return nil, errors.New("the name is empty")
	case m.timer.name != "" && ofTimer && slices.Contains([]string{"", "_sum", "_count", "_bucket"}, rest):
		return nil, errors.New("response times have the same name")
	case isReserved(metric):
		return nil, errReserved
	}
	shared := m.metrics[metric]
	if shared == nil {
		shared = &mappedMetric{help: help}
	}
	desc := prometheus.NewDesc(metric, shared.help, names, nil)
	if _, err := prometheus.NewConstMetric(desc, prometheus.CounterValue, 0, values...); err != nil {
		return nil, err //nolint:wrapcheck // the caller names the metric
	}
	shared.series++
	m.metrics[metric] = shared
	return &mappedSeries{metric: metric, desc: desc, values: values}, nil
}

// forget gives up a series.
func (m *mappedMetrics) removeSeries(key string, s *mappedSeries) {
	delete(m.series, key)
	shared := m.metrics[s.metric]
	if shared.series--; shared.series == 0 {
		delete(m.metrics, s.metric)
	}
}

// refuse logs once that a metric cannot be shown.
func (m *mappedMetrics) logRejected(metric string, why error) {
	if _, known := m.rejected[metric]; known || len(m.rejected) == maxRejected {
		return
	}
	m.rejected[metric] = struct{}{}
	m.log.WithError(why).WithField("metric", metric).Warn("PROMETHEUS_MAPPER_YAML: a statistic cannot be shown under the name that it gets")
}
