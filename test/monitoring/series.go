// Package monitoring reads the dashboards and the alert rules of the
// documentation, and finds out what their expressions ask for: which metrics,
// which labels with which values, and which labels an answer has. Tests hold
// that against what a service shows. It evaluates nothing.
package monitoring

import (
	"fmt"
	"maps"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"
)

// Series are what a service shows to Prometheus, and what Prometheus itself
// adds.
type Series struct {
	metrics map[string]metric
}

type metric struct {
	counts bool // only grows, until a restart
	labels []map[string]string
}

// scraped are the labels that every series gets from the scraper.
func scraped() []string { return []string{"instance", "job"} }

// Shown are those of a page of metrics.
func Shown(families map[string]*dto.MetricFamily) Series {
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
			s.add(name+"_bucket", true, with(own, "le", fmt.Sprint(bucket.GetUpperBound())))
		}
	case dto.MetricType_SUMMARY:
		s.addParts(name, own)
		for _, quantile := range m.GetSummary().GetQuantile() {
			s.add(name, false, with(own, "quantile", fmt.Sprint(quantile.GetQuantile())))
		}
	default:
		s.add(name, kind == dto.MetricType_COUNTER, own)
	}
}

func (s Series) addParts(name string, own map[string]string) {
	s.add(name+"_sum", true, own)
	s.add(name+"_count", true, own)
}

func (s Series) add(name string, counts bool, own map[string]string) {
	s.metrics[name] = metric{counts, append(s.metrics[name].labels, own)}
}

func with(all map[string]string, name, value string) map[string]string {
	all = maps.Clone(all)
	all[name] = value
	return all
}

// names are the labels that the metric has.
func (m metric) names() []string {
	return append(slices.Collect(maps.Keys(m.labels[0])), scraped()...)
}

// check tells what the metric lacks of what a matcher asks for. Values of the
// scraper's labels and statuses of answers are not known beforehand.
func (m metric) check(asked *labels.Matcher) error {
	if !slices.Contains(m.names(), asked.Name) {
		return fmt.Errorf("there is no label %s", asked.Name)
	}
	if slices.Contains(append(scraped(), "code"), asked.Name) {
		return nil
	}
	listed := asked.SetMatches()
	if asked.Type == labels.MatchEqual || asked.Type == labels.MatchNotEqual {
		listed = []string{asked.Value}
	}
	for _, value := range listed {
		if !m.some(func(has string) bool { return has == value }, asked.Name) {
			return fmt.Errorf("no series has %s=%q", asked.Name, value)
		}
	}
	if !m.some(asked.Matches, asked.Name) {
		return fmt.Errorf("no series has %s", asked)
	}
	return nil
}

func (m metric) some(holds func(string) bool, label string) bool {
	return slices.ContainsFunc(m.labels, func(own map[string]string) bool { return holds(own[label]) })
}
