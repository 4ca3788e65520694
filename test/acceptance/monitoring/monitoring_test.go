package monitoring

import (
	"net/http"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/monitoring"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestDashboardsAndAlerts checks that every metric, label and value in the dashboards and alerts
// exists in a service with TLS and little traffic, and that query results have every label that the
// dashboards show.
func TestDashboardsAndAlerts(t *testing.T) {
	expressions := documentedExpressions(t)
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startWithAllMetrics(t, e)
		apiclient.Call(t, "GET", s.API+"/ready", nil).WantStatus(t, http.StatusOK)
		for path, status := range map[string]int{"/auth/login": http.StatusBadRequest, "/v0.1/publish": http.StatusUnauthorized} {
			apiclient.Call(t, "POST", s.API+path, map[string]any{}).WantStatus(t, status) // a route has a histogram after its first request
		}
		apiclient.Call(t, "GET", s.API+"/v2/api/methods.json", nil)
		shown := monitoring.SeriesOf(s.ReadMetrics())
		for _, x := range expressions {
			labels, err := shown.ResultLabels(x.Text)
			if err != nil {
				t.Errorf("%s: %v\n%s", x.Where, err, x.Text)
				continue
			}
			for _, name := range x.Names {
				if !slices.Contains(labels, name) {
					t.Errorf("%s shows the label %s, the answer has %v", x.Where, name, labels)
				}
			}
		}
	})
}

func documentedExpressions(t *testing.T) []monitoring.Expression {
	t.Helper()
	dashboards, err := monitoring.ReadDashboards("../../../docs/dashboards")
	must.Succeed(t, err)
	rules, err := monitoring.ReadRules("../../../docs/alerts.yaml")
	must.Succeed(t, err)
	all := rules.Expressions()
	for i := range dashboards {
		all = append(all, dashboards[i].Expressions()...)
	}
	if len(all) < 100 {
		t.Fatalf("the documentation has %d expressions", len(all))
	}
	return all
}
