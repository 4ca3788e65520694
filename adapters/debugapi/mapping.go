package debugapi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/statsd_exporter/pkg/mapper"
	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
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
