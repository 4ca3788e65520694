// Package monitoring reads the dashboards and alert rules of the documentation, and determines
// which metrics, labels and values their expressions use, and which labels their results have.
// Tests compare that with the metrics of a running service. It does not evaluate expressions.
package monitoring

import (
	"fmt"
	"maps"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"
)

// Series are the time series of a service, and those that Prometheus adds.
type Series struct {
	metrics map[string]metric
}

type metric struct {
	isCounter bool // never decreases, except by a restart
	labels    []map[string]string
}

// scrapeLabels returns the labels that Prometheus adds to every series.
func scrapeLabels() []string { return []string{"instance", "job"} }

// SeriesOf returns the series of a page of metrics.
func SeriesOf(families map[string]*dto.MetricFamily) Series {
	s := Series{map[string]metric{"up": {labels: []map[string]string{{}}}}}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			s.addFamily(name, family.GetType(), m)
		}
	}
	return s
}

func (s Series) addFamily(name string, kind dto.MetricType, m *dto.Metric) {
	own := map[string]string{}
	for _, pair := range m.GetLabel() {
		own[pair.GetName()] = pair.GetValue()
	}
	switch kind {
	case dto.MetricType_HISTOGRAM:
		s.addParts(name, own)
		for _, bucket := range m.GetHistogram().GetBucket() {
			s.addSeries(name+"_bucket", true, withLabel(own, "le", fmt.Sprint(bucket.GetUpperBound())))
		}
	case dto.MetricType_SUMMARY:
		s.addParts(name, own)
		for _, quantile := range m.GetSummary().GetQuantile() {
			s.addSeries(name, false, withLabel(own, "quantile", fmt.Sprint(quantile.GetQuantile())))
		}
	default:
		s.addSeries(name, kind == dto.MetricType_COUNTER, own)
	}
}

func (s Series) addParts(name string, own map[string]string) {
	s.addSeries(name+"_sum", true, own)
	s.addSeries(name+"_count", true, own)
}

func (s Series) addSeries(name string, counts bool, own map[string]string) {
	s.metrics[name] = metric{counts, append(s.metrics[name].labels, own)}
}

func withLabel(all map[string]string, name, value string) map[string]string {
	all = maps.Clone(all)
	all[name] = value
	return all
}

// labelNames returns the names of the metric's labels.
func (m metric) labelNames() []string {
	return append(slices.Collect(maps.Keys(m.labels[0])), scrapeLabels()...)
}

// checkMatcher returns an error if the metric does not have the label or a value of a matcher. It
// does not check values of the scraper's labels and status codes, which are not known in advance.
func (m metric) checkMatcher(matcher *labels.Matcher) error {
	if !slices.Contains(m.labelNames(), matcher.Name) {
		return fmt.Errorf("there is no label %s", matcher.Name)
	}
	if slices.Contains(append(scrapeLabels(), "code"), matcher.Name) {
		return nil
	}
	listed := matcher.SetMatches()
	if matcher.Type == labels.MatchEqual || matcher.Type == labels.MatchNotEqual {
		listed = []string{matcher.Value}
	}
	for _, value := range listed {
		if !m.hasValue(func(has string) bool { return has == value }, matcher.Name) {
			return fmt.Errorf("no series has %s=%q", matcher.Name, value)
		}
	}
	if !m.hasValue(matcher.Matches, matcher.Name) {
		return fmt.Errorf("no series has %s", matcher)
	}
	return nil
}

func (m metric) hasValue(matches func(string) bool, label string) bool {
	return slices.ContainsFunc(m.labels, func(own map[string]string) bool { return matches(own[label]) })
}
