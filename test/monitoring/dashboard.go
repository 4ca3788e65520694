package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Expression is one of PromQL in the documentation.
type Expression struct {
	Where string   // the file, and what in it
	Text  string   // as Prometheus gets it
	Names []string // labels that are shown to a reader
}

// Dashboard is what tests look at of a dashboard of Grafana.
type Dashboard struct {
	File       string `json:"-"`
	Title      string
	UID        string
	Panels     []Panel
	Templating struct{ List []Variable }
}

// Panel is a picture of a dashboard, or a row, which is a heading.
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

// Source is where Grafana sends an expression.
type Source struct{ Type, UID string }

// Target is one expression of a panel.
type Target struct {
	Datasource   Source
	Expr         string
	LegendFormat string
	RefID        string
}

// Variable is what a reader chooses above the panels.
type Variable struct {
	Name, Type, Definition string
	Query                  any
}

// Dashboards reads all of a folder.
func Dashboards(folder string) ([]Dashboard, error) {
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

// Expressions are those of panels and variables, with all that a reader may
// choose chosen.
func (d *Dashboard) Expressions() []Expression {
	var all []Expression
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			all = append(all, Expression{d.File + ": " + p.Title, d.filled(t.Expr), captured(legendLabel, t.LegendFormat)})
		}
	}
	for _, v := range d.Templating.List {
		if call := labelValues.FindStringSubmatch(v.Definition); call != nil {
			all = append(all, Expression{d.File + ": $" + v.Name, d.filled(call[1]), call[2:]})
		}
	}
	return all
}

// filled puts values in the place of variables.
func (d *Dashboard) filled(expression string) string {
	expression = strings.ReplaceAll(expression, "$__rate_interval", "5m")
	for _, v := range d.Templating.List {
		expression = strings.ReplaceAll(expression, `"$`+v.Name+`"`, `".*"`)
	}
	return expression
}

func captured(pattern *regexp.Regexp, text string) []string {
	var all []string
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}
