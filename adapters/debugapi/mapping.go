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

// renameOptions replaces old names of options by their current names. It returns a file without old
// names unchanged.
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

// renameSectionOptions renames the options of one section. It reports whether there were old names.
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

// optionValue returns the value of an option, or nil.
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

// discardTimer discards response times, for mappings that drop them.
type discardTimer struct{}

func (discardTimer) Observe(float64)                  {}
func (discardTimer) Describe(chan<- *prometheus.Desc) {}
func (discardTimer) Collect(chan<- prometheus.Metric) {}
