package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"

	"github.com/tollgate-dev/tollgate/test/must"
)

const docs = "../../../../docs"

func loadDashboards(t *testing.T) []Dashboard {
	t.Helper()
	all, err := ReadDashboards(filepath.Join(docs, "dashboards"))
	if err != nil || len(all) < 4 {
		t.Fatalf("%d dashboards: %v", len(all), err)
	}
	return all
}

func loadRules(t *testing.T) Rules {
	t.Helper()
	r, err := ReadRules(filepath.Join(docs, "alerts.yaml"))
	if err != nil || len(r.Alerts()) < 10 {
		t.Fatalf("%d alerts: %v", len(r.Alerts()), err)
	}
	return r
}

// TestDashboards checks that the dashboards work in any Grafana: they name no particular data
// source, ids are unique, and each panel has a unit and a description.
func TestDashboards(t *testing.T) {
	uids := map[string]string{}
	for _, d := range loadDashboards(t) {
		if other, taken := uids[d.UID]; taken || d.UID == "" || d.Title == "" {
			t.Errorf("%s: title %q, uid %q, same as in %q", d.File, d.Title, d.UID, other)
		}
		uids[d.UID] = d.File
		ids := map[int]bool{}
		for i, p := range d.Panels {
			if ids[p.ID] || p.Title == "" {
				t.Errorf("%s: panel %q has no title, or its id %d is not unique", d.File, p.Title, p.ID)
			}
			ids[p.ID] = true
			checkPlace(t, d, i)
			if p.Type != "row" {
				checkPanel(t, d.File, p)
			}
		}
		for _, v := range d.Templating.List {
			if query, ok := v.Query.(map[string]any); ok && query["query"] != v.Definition {
				t.Errorf("%s: $%s is defined as %q but queries %q", d.File, v.Name, v.Definition, query["query"])
			}
		}
	}
}

func checkPanel(t *testing.T, file string, p Panel) {
	t.Helper()
	if p.Description == "" || p.FieldConfig.Defaults.Unit == "" {
		t.Errorf("%s: %s: the description is %q, the unit %q", file, p.Title, p.Description,
			p.FieldConfig.Defaults.Unit)
	}
	if len(p.Targets) == 0 {
		t.Errorf("%s: %s has no expression", file, p.Title)
	}
	refs := map[string]bool{}
	for _, target := range p.Targets {
		if refs[target.RefID] || target.LegendFormat == "" {
			t.Errorf("%s: %s: two targets are %q, or one has no legend", file, p.Title, target.RefID)
		}
		refs[target.RefID] = true
		for _, from := range []Source{p.Datasource, target.Datasource} {
			if from != (Source{"prometheus", "${datasource}"}) {
				t.Errorf("%s: %s uses the data source %v", file, p.Title, from)
			}
		}
	}
}

// checkPlace checks that a panel is within the 24 columns and does not overlap an earlier one.
func checkPlace(t *testing.T, d Dashboard, i int) {
	t.Helper()
	at := d.Panels[i].GridPos
	if at.X < 0 || at.W < 1 || at.H < 1 || at.X+at.W > 24 {
		t.Errorf("%s: %s is at %+v", d.File, d.Panels[i].Title, at)
	}
	for _, other := range d.Panels[:i] {
		o := other.GridPos
		if at.X < o.X+o.W && o.X < at.X+at.W && at.Y < o.Y+o.H && o.Y < at.Y+at.H {
			t.Errorf("%s: %s overlaps %s", d.File, d.Panels[i].Title, other.Title)
		}
	}
}

// TestAlerts checks that each alert has a severity, a summary and a description, and is in
// docs/alerts.md.
func TestAlerts(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docs, "alerts.md"))
	must.Succeed(t, err)
	var documented, defined []string
	for _, heading := range regexp.MustCompile(`(?m)^### (Tollgate\w+)$`).FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, heading[1])
	}
	for _, a := range loadRules(t).Alerts() {
		defined = append(defined, a.Name)
		if s := a.Labels["severity"]; len(a.Labels) != 1 || s != "critical" && s != "warning" {
			t.Errorf("%s has labels %v", a.Name, a.Labels)
		}
		if len(a.Annotations) != 2 || a.Annotations["summary"] == "" ||
			!strings.HasSuffix(a.Annotations["description"], ".") {
			t.Errorf("%s is described by %v", a.Name, a.Annotations)
		}
		if _, err := model.ParseDuration(a.For); err != nil && a.For != "" {
			t.Errorf("%s: for: %v", a.Name, err)
		}
	}
	slices.Sort(documented)
	slices.Sort(defined)
	if !slices.Equal(documented, defined) {
		t.Errorf("docs/alerts.md describes\n%v, defined are\n%v", documented, defined)
	}
}
