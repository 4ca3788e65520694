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
	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
)

// maxMapping bounds the file of PROMETHEUS_MAPPER_YAML, in bytes.
const maxMapping = 1 << 20

// readMapping reads a file with the Prometheus names of statistics, in the format of the statsd
// exporter (https://github.com/prometheus/statsd_exporter#metric-mapping-and-configuration). It
// also accepts the option names of older versions of the exporter, because mappings for the Envoy
// rate limit service use them.
func readMapping(path string) (*mapper.MetricMapper, error) {
	content, err := files.Read(path, maxMapping)
	if err != nil {
		return nil, err
	}
	if content, err = renameOptions(content); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m := &mapper.MetricMapper{}
	if err := m.InitFromYAMLString(string(content)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range m.Mappings {
		if err := checkMapping(&m.Mappings[i]); err != nil {
			return nil, fmt.Errorf("%s: mapping of %q: %w", path, m.Mappings[i].Match, err)
		}
	}
	return m, nil
}

// checkMapping returns an error for a mapping that Prometheus does not allow.
func checkMapping(m *mapper.MetricMapping) error {
	for label := range m.Labels {
		if label == "le" || label == "quantile" || strings.HasPrefix(label, "__") {
			return fmt.Errorf("the label %s is reserved by Prometheus", label)
		}
	}
	if m.Scale.Set && m.Scale.Val < 0 {
		return errors.New("scale must not be negative")
	}
	if m.HistogramOptions != nil {
		for i, b := range m.HistogramOptions.Buckets[min(1, len(m.HistogramOptions.Buckets)):] {
			if b <= m.HistogramOptions.Buckets[i] {
				return errors.New("buckets must be in increasing order")
			}
		}
	}
	if m.SummaryOptions != nil && m.SummaryOptions.MaxAge < 0 {
		return errors.New("max_age must not be negative")
	}
	return nil
}

// options are the options of a section of the file.
type options = map[string]any

// renameOptions replaces old names of options by their current names. It returns a file without old
// names unchanged.
func renameOptions(content []byte) ([]byte, error) {
	var file options
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, err //nolint:wrapcheck // the caller names the file
	}
	changed := renameSectionOptions(file["defaults"])
	list, _ := file["mappings"].([]any) // another type is an error of the mapper
	for _, section := range list {
		changed = renameSectionOptions(section) || changed
	}
	if !changed {
		return content, nil
	}
	return yaml.Marshal(file) //nolint:wrapcheck // the caller names the file
}

// renameSectionOptions renames the options of one section. It reports whether there were old names.
func renameSectionOptions(of any) (changed bool) {
	section, ok := of.(options)
	if !ok {
		return false
	}
	for _, renewed := range []struct{ old, group, name string }{
		{"timer_type", "", "observer_type"},
		{"buckets", "histogram_options", "buckets"},
		{"quantiles", "summary_options", "quantiles"},
	} {
		value, present := section[renewed.old]
		if !present {
			continue
		}
		delete(section, renewed.old)
		into := section
		if renewed.group != "" {
			if into, _ = section[renewed.group].(options); into == nil {
				into = options{}
				section[renewed.group] = into
			}
		}
		if _, given := into[renewed.name]; !given {
			into[renewed.name] = value
		}
		changed = true
	}
	if section["match_metric_type"] == "timer" {
		section["match_metric_type"], changed = string(mapper.MetricTypeObserver), true
	}
	return changed
}

// discardTimer discards response times, for mappings that drop them.
type discardTimer struct{}

func (discardTimer) Observe(float64)                  {}
func (discardTimer) Describe(chan<- *prometheus.Desc) {}
func (discardTimer) Collect(chan<- prometheus.Metric) {}

// maxIdle is the time after which an unchanged series is removed, if there are more series than
// statistics. Such series belong to values that were removed; values are removed after the same
// time.
const maxIdle = time.Hour

// maxRejected bounds the number of rejected names that are stored and logged.
const maxRejected = 100

// ownPrefixes begin the names of metrics that are not statistics of the rate limit service.
var ownPrefixes = []string{"tollgate_", "go_", "process_", "promhttp_"}

// mappedMetrics exports the counters under the names of a mapping. Counters with the same name are
// added. It adds the increments since the last collection, so that a sum does not decrease when one
// of its counters is removed.
type mappedMetrics struct {
	mapper *mapper.MetricMapper
	log    *logrus.Entry
	timer  timer
	now    func() time.Time

	mutex    sync.Mutex // protects the fields below
	changes  *statistics.Changes
	series   map[string]*mappedSeries
	metrics  map[string]*mappedMetric
	rejected map[string]struct{}
}

// mappedMetric is the common part of the series of a metric.
type mappedMetric struct {
	help   string
	series int
}

// mappedSeries is a metric with values of its labels.
type mappedSeries struct {
	metric  string
	desc    *prometheus.Desc
	values  []string // of the labels
	value   float64
	touched time.Time
	ttl     time.Duration // 0 = no limit
}

// Observe records a time in milliseconds.
func (t timer) Observe(ms float64) { t.Observer.Observe(ms * t.scale) }

// timer is the metric of response times.
type timer struct {
	prometheus.Collector
	prometheus.Observer
	name  string
	scale float64
}

func newMappedMetrics(m *mapper.MetricMapper, s *statistics.Statistics, log *logrus.Entry) (*mappedMetrics, error) {
	t := newTimer(m)
	if isReserved(t.name) {
		return nil, fmt.Errorf("the response times have the name %s: %w", t.name, errReserved)
	}
	return &mappedMetrics{
		mapper: m, log: log, timer: t, now: time.Now, changes: s.NewChanges(),
		series: map[string]*mappedSeries{}, metrics: map[string]*mappedMetric{}, rejected: map[string]struct{}{},
	}, nil
}

var errReserved = errors.New("names with this prefix are reserved for metrics of the process")

func isReserved(metric string) bool {
	return slices.ContainsFunc(ownPrefixes, func(own string) bool { return strings.HasPrefix(metric, own) })
}

// newTimer returns the histogram or summary of response times that the mapping defines.
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
		h := prometheus.NewHistogram(histogramOptions(m, found, prometheus.HistogramOpts{
			Name: t.name, Help: help, ConstLabels: labels,
		}))
		t.Collector, t.Observer = h, h
		return t
	}
	s := prometheus.NewSummary(summaryOptions(m, found, prometheus.SummaryOpts{
		Name: t.name, Help: help, ConstLabels: labels,
	}))
	t.Collector, t.Observer = s, s
	return t
}

func histogramOptions(
	m *mapper.MetricMapper, found *mapper.MetricMapping, o prometheus.HistogramOpts,
) prometheus.HistogramOpts {
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

func summaryOptions(
	m *mapper.MetricMapper, found *mapper.MetricMapping, o prometheus.SummaryOpts,
) prometheus.SummaryOpts {
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

// collect adds the increments since the last collection and exports all metrics.
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
		if err == nil { // newSeries has checked it
			to <- metric
		}
	}
}

// addToSeries adds an increment to the series of a name.
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
	values := each.Map(names, func(label string) string { return labels[label] })
	key := strings.Join(slices.Concat([]string{metric}, names, values), "\xff")
	s := m.series[key]
	if s == nil {
		var err error
		if s, err = m.newSeries(metric, cmp.Or(found.HelpText, "Statistics of the rate limit service."), names,
			values); err != nil {
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

// newSeries returns a series, or an error if its name or labels are not possible.
func (m *mappedMetrics) newSeries(metric, help string, names, values []string) (*mappedSeries, error) {
	rest, ofTimer := strings.CutPrefix(metric, m.timer.name)
	switch {
	case metric == "":
		return nil, errors.New("the name is empty")
	case m.timer.name != "" && ofTimer && slices.Contains([]string{"", "_sum", "_count", "_bucket"}, rest):
		return nil, errors.New("this is the name of the response times")
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

func (m *mappedMetrics) removeSeries(key string, s *mappedSeries) {
	delete(m.series, key)
	shared := m.metrics[s.metric]
	if shared.series--; shared.series == 0 {
		delete(m.metrics, s.metric)
	}
}

// logRejected logs once that a metric cannot be exported.
func (m *mappedMetrics) logRejected(metric string, why error) {
	if _, known := m.rejected[metric]; known || len(m.rejected) == maxRejected {
		return
	}
	m.rejected[metric] = struct{}{}
	m.log.WithError(why).WithField("metric", metric).
		Warn("PROMETHEUS_MAPPER_YAML: a statistic cannot be exported under its mapped name; change the mapping")
}
