package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"go.yaml.in/yaml/v4"
)

// Rules is a rule file of Prometheus that has alerts alone.
type Rules struct {
	File   string  `yaml:"-"`
	Groups []Group `yaml:"groups"`
}

// Group holds alerts that are looked at together.
type Group struct {
	Name  string  `yaml:"name"`
	Rules []Alert `yaml:"rules"`
}

// Alert fires while its expression has an answer and has had one for some time.
type Alert struct {
	Name        string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// ReadRules refuses fields that alerts do not have, and those that are there twice.
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

// Alerts are those of all groups.
func (r Rules) Alerts() []Alert {
	var all []Alert
	for _, g := range r.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

var annotationLabel = regexp.MustCompile(`\$labels\.(\w+)`)

// Expressions are those of all alerts.
func (r Rules) Expressions() []Expression {
	var all []Expression
	for _, a := range r.Alerts() {
		var names []string
		for _, text := range a.Annotations {
			names = append(names, captured(annotationLabel, text)...)
		}
		all = append(all, Expression{r.File + ": " + a.Name, a.Expr, names})
	}
	return all
}
