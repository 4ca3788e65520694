package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Expression is a PromQL expression of the documentation.
type Expression struct {
	Where string   // the file, and the panel, variable or alert
	Text  string   // with variables replaced
	Names []string // labels that a reader sees
}

// Dashboard is the part of a Grafana dashboard that tests check.
type Dashboard struct {
	File       string `json:"-"`
	Title      string
	UID        string
	Panels     []Panel
	Templating struct{ List []Variable }
}

// Panel is a panel of a dashboard, or a row, which is a heading.
type Panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	Datasource  Source
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []Target
}

// Source is the data source of an expression.
type Source struct{ Type, UID string }

// Target is one expression of a panel.
type Target struct {
	Datasource   Source
	Expr         string
	LegendFormat string
	RefID        string
}

// Variable is a variable that readers choose at the top of a dashboard.
type Variable struct {
	Name, Type, Definition string
	Query                  any
}

// ReadDashboards reads all dashboards of a folder.
func ReadDashboards(folder string) ([]Dashboard, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list dashboards: %w", err)
	}
	all := make([]Dashboard, len(files))
	for i, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read dashboard: %w", err)
		}
		all[i].File = filepath.Base(file)
		if err := json.Unmarshal(content, &all[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return all, nil
}

var (
	labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// Expressions returns the expressions of panels and variables, with all values of variables
// selected.
func (d *Dashboard) Expressions() []Expression {
	var all []Expression
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			all = append(all, Expression{
				d.File + ": " + p.Title, d.replaceVariables(t.Expr), findLabels(legendLabel, t.LegendFormat),
			})
		}
	}
	for _, v := range d.Templating.List {
		if call := labelValues.FindStringSubmatch(v.Definition); call != nil {
			all = append(all, Expression{d.File + ": $" + v.Name, d.replaceVariables(call[1]), call[2:]})
		}
	}
	return all
}

// replaceVariables replaces the variables of an expression by patterns that match all their values.
func (d *Dashboard) replaceVariables(expression string) string {
	expression = strings.ReplaceAll(expression, "$__rate_interval", "5m")
	for _, v := range d.Templating.List {
		expression = strings.ReplaceAll(expression, `"$`+v.Name+`"`, `".*"`)
	}
	return expression
}

func findLabels(pattern *regexp.Regexp, text string) []string {
	var all []string
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}
