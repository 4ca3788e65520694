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

// readMapping reads a file that says how statistics are named for Prometheus, in the form of the statsd
// exporter (https://github.com/prometheus/statsd_exporter#metric-mapping-and-configuration). It takes
// the names that older versions of the exporter had for options too, since the Envoy rate limit service
// and the mappings that are written for it have them.
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

// checkMapping refuses what could not be shown.
func checkMapping(m *mapper.MetricMapping) error {
	for label := range m.Labels {
		if label == "le" || label == "quantile" || strings.HasPrefix(label, "__") {
			return fmt.Errorf("the label %s has a meaning of its own in Prometheus", label)
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

// renewOptions gives options the names that they have now. A file that has none of the old ones is
// returned as it is.
func renameOptions(content []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, err //nolint:wrapcheck // the caller names the file
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) == 0 {
		return content, nil
	}
	root := document.Content[0]
	changed := renameSectionOptions(optionValue(root, "defaults"))
	if list := optionValue(root, "mappings"); list != nil {
		for _, section := range list.Content {
			changed = renameSectionOptions(section) || changed
		}
	}
	if !changed {
		return content, nil
	}
	return yaml.Marshal(&document) //nolint:wrapcheck // the caller names the file
}

// renewSection renews the options of one section and reports whether there were old ones.
func renameSectionOptions(section *yaml.Node) bool {
	if section == nil || section.Kind != yaml.MappingNode {
		return false
	}
	changed := false
	for _, renewed := range []struct{ old, group, name string }{
		{"timer_type", "", "observer_type"},
		{"buckets", "histogram_options", "buckets"},
		{"quantiles", "summary_options", "quantiles"},
	} {
		value := optionValue(section, renewed.old)
		if value == nil {
			continue
		}
		removeOption(section, renewed.old)
		into := section
		if renewed.group != "" {
			if into = optionValue(section, renewed.group); into == nil {
				into = &yaml.Node{Kind: yaml.MappingNode}
				addOption(section, renewed.group, into)
			}
		}
		if optionValue(into, renewed.name) == nil {
			addOption(into, renewed.name, value)
		}
		changed = true
	}
	if kind := optionValue(section, "match_metric_type"); kind != nil && kind.Value == "timer" {
		kind.Value, changed = string(mapper.MetricTypeObserver), true
	}
	return changed
}

// valueOf returns the value of a key; nil for none.
func optionValue(section *yaml.Node, key string) *yaml.Node {
	if section.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(section.Content); i += 2 {
		if section.Content[i].Value == key {
			return section.Content[i+1]
		}
	}
	return nil
}

func addOption(section *yaml.Node, key string, value *yaml.Node) {
	section.Content = append(section.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
}

func removeOption(section *yaml.Node, key string) {
	for i := 0; i+1 < len(section.Content); i += 2 {
		if section.Content[i].Value == key {
			section.Content = append(section.Content[:i:i], section.Content[i+2:]...)
			return
		}
	}
}

// noTimer takes the times of calls where a mapping drops them.
type discardTimer struct{}

func (discardTimer) Observe(float64)                  {}
func (discardTimer) Describe(chan<- *prometheus.Desc) {}
func (discardTimer) Collect(chan<- prometheus.Metric) {}
