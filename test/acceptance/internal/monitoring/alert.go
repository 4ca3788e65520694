package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"go.yaml.in/yaml/v4"
)

// Rules is a rule file of Prometheus that contains only alerts.
type Rules struct {
	File   string  `yaml:"-"`
	Groups []Group `yaml:"groups"`
}

// Group is a group of alerts that Prometheus evaluates together.
type Group struct {
	Name  string  `yaml:"name"`
	Rules []Alert `yaml:"rules"`
}

// Alert is an alert. It fires when its expression has had a result for the duration For.
type Alert struct {
	Name        string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// ReadRules reads a rule file. It returns an error for unknown and for repeated fields.
func ReadRules(path string) (Rules, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Rules{}, fmt.Errorf("read rules: %w", err)
	}
	rules := Rules{File: filepath.Base(path)}
	if err := yaml.Load(content, &rules, yaml.WithKnownFields(), yaml.WithUniqueKeys()); err != nil {
		return Rules{}, fmt.Errorf("%s: %w", path, err)
	}
	return rules, nil
}

// Alerts returns the alerts of all groups.
func (r Rules) Alerts() []Alert {
	var all []Alert
	for _, g := range r.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

var annotationLabel = regexp.MustCompile(`\$labels\.(\w+)`)

// Expressions returns the expressions of all alerts.
func (r Rules) Expressions() []Expression {
	var all []Expression
	for _, a := range r.Alerts() {
		var names []string
		for _, text := range a.Annotations {
			names = append(names, findLabels(annotationLabel, text)...)
		}
		all = append(all, Expression{r.File + ": " + a.Name, a.Expr, names})
	}
	return all
}
