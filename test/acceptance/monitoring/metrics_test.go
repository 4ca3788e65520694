package monitoring

import (
	"context"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/program"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

// documentedMetric is a row of docs/metrics.md.
type documentedMetric struct {
	kind   string
	labels []string // sorted
}

var (
	metricRow   = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\|(.*?)\\| \\S.* \\|$")
	metricLabel = regexp.MustCompile("^`(\\w+)`(?::|$)")
)

func documentedMetrics(t *testing.T) map[string]documentedMetric {
	t.Helper()
	page, err := os.ReadFile("../../../docs/metrics.md")
	must.Succeed(t, err)
	all := map[string]documentedMetric{}
	for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
		d := documentedMetric{kind: row[2]}
		for label := range strings.SplitSeq(strings.TrimSpace(row[3]), "; ") {
			if name := metricLabel.FindStringSubmatch(label); name != nil {
				d.labels = append(d.labels, name[1])
			} else if label != "" {
				t.Errorf("%s: label %q is not written as `name` or `name`: values", row[1], label)
			}
		}
		slices.Sort(d.labels)
		if _, twice := all[row[1]]; twice {
			t.Errorf("%s is documented twice", row[1])
		}
		all[row[1]] = d
	}
	return all
}

// startWithAllMetrics starts a service with the parts that have optional metrics: TLS, checks of
// packages, a mirror, and a provider of company sign-in.
func startWithAllMetrics(t *testing.T, e *fixture.Environment) *fixture.Service {
	t.Helper()
	files := fixture.NewTLSFiles(e.Dir)
	files.Write(t, testcert.NewAuthority(t))
	e.RunCommand(t, "", "mirror", "add", "other", upstream.Start(t).URL) // before the start, which looks for mirrors
	e.RunCommand(t, "", "provider", "add", "acme", "--issuer", "https://login.acme.example", "--client-id", "tollgate")
	s := e.Start(t, "GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT="+files.Cert, "GRPC_SERVER_TLS_KEY="+files.Key,
		"PACKAGE_CHECKS=enforce")
	apiclient.Call(t, "GET", s.API+"/v0.1/servers", nil).WantStatus(t, 200) // the times of a route are there from its first request on
	await.Until(t, "the gauges of the mirror", func() bool {
		return s.ReadMetrics("tollgate_mirror_failing")["tollgate_mirror_failing"] != nil
	})
	return s
}

// TestMetricsAreDocumented compares /metrics of a service after one request with docs/metrics.md:
// each documented metric exists with its type and labels, and each metric of the service is
// documented.
func TestMetricsAreDocumented(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		live, documented := startWithAllMetrics(t, e).ReadMetrics(), documentedMetrics(t)
		for _, name := range slices.Sorted(maps.Keys(documented)) {
			family, want := live[name], documented[name]
			if family == nil {
				t.Errorf("%s is not at /metrics", name)
				continue
			}
			if got := strings.ToLower(family.GetType().String()); got != want.kind {
				t.Errorf("%s is a %s, the page says %s", name, got, want.kind)
			}
			for _, m := range family.GetMetric() {
				if got := labelNames(m); !slices.Equal(got, want.labels) {
					t.Errorf("%s has labels %v, the page says %v", name, got, want.labels)
					break
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(live)) {
			if _, told := documented[name]; !told && strings.HasPrefix(name, "tollgate_") {
				t.Errorf("%s is not on the page", name)
			}
		}
	})
}

func labelNames(m *dto.Metric) []string {
	var names []string
	for _, l := range m.GetLabel() {
		names = append(names, l.GetName())
	}
	slices.Sort(names)
	return names
}

// TestLogIsCounted checks that the metric counts as many lines as the log has, including lines from
// before the first listener starts.
func TestLogIsCounted(t *testing.T) {
	s := fixture.NewEnvironment(t, "embedded").Start(t)
	s.AwaitLog(`"setup":`) // later lines have another level
	for _, level := range []string{"warning", "error"} {
		got, want := s.Metric("tollgate_log_entries_total", "level", level),
			strings.Count(s.Process.Log(), `"level":"`+level+`"`)
		if int(got) != want {
			t.Errorf("%v lines of level %s are counted, the log has %d", got, level, want)
		}
	}
}

// TestRequestsMoveMetrics checks that the service counts requests by route, refusals by limit, and
// batches of hits of an external counter store.
func TestRequestsMoveMetrics(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, "REGISTRY_RATE_LIMIT=2")
		const list = "/v0.1/servers"
		apiclient.Call(t, "GET", s.API+list, nil).WantStatus(t, http.StatusOK)
		apiclient.Call(t, "GET", s.API+list+"/com.example%2Fnone/versions/1.0.0", nil).WantStatus(t,
			http.StatusNotFound)
		apiclient.Call(t, "GET", s.API+list, nil).WantStatus(t, http.StatusTooManyRequests)
		for _, want := range [][]string{
			{"tollgate_http_requests_total", "part", "registry", "route", list, "method", "GET", "code", "200"},
			{"tollgate_http_requests_total", "route", list + "/{serverName}/versions/{version}", "code", "404"},
			{"tollgate_http_requests_total", "part", "registry", "route", "none", "code", "429"},
			{"tollgate_http_request_duration_seconds", "part", "registry", "route", list, "method", "GET"},
			{"tollgate_throttled_total", "scope", "registry"},
		} {
			if got := s.Metric(want[0], want[1:]...); got != 1 {
				t.Errorf("%v is %v, want 1", want, got)
			}
		}
		for _, name := range []string{
			"tollgate_counter_store_requests_total", "tollgate_counter_store_request_duration_seconds",
		} {
			if got := s.Metric(name, "operation", "add"); got > 0 != e.Shared {
				t.Errorf("%s is %v", name, got)
			}
		}
		if got := s.Metric("go_sql_open_connections", "db_name", "records"); got < 1 {
			t.Errorf("%v connections to the database are open", got)
		}
	})
}

// TestMetricsOfSomeParts checks that the listener for Prometheus has the metrics of the parts that
// run, and no others.
func TestMetricsOfSomeParts(t *testing.T) {
	for _, c := range []struct{ args, there, absent string }{
		{
			"serve --only methods",
			`tollgate_http_requests_total{code="500",method="GET",part="methods",route="/v2/api/methods.json"} 0`,
			`part="auth" ratelimit_ tollgate_logins_ tollgate_publications_ tollgate_plugin_ tollgate_session_checks_`,
		},
		{
			"serve --only registry", `tollgate_publications_total{operation="publish",outcome="done"} 0`,
			`part="auth" ratelimit_ tollgate_logins_ tollgate_token_ tollgate_step_ups_ tollgate_sessions_ tollgate_login_ tollgate_lockouts_ tollgate_password_ tollgate_notices_`,
		},
		{
			"serve --only auth", `tollgate_logins_total{outcome="succeeded"} 0`,
			`part="registry" ratelimit_ tollgate_publications_ tollgate_package_`,
		},
		{"serve --only ratelimit", "ratelimit_service_config_load_error 0", "tollgate_http_ tollgate_logins_"},
		{"ratelimit", `tollgate_log_entries_total{level="error"} 0`, "tollgate_http_ tollgate_logins_"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			e := fixture.NewEnvironment(t, "embedded")
			environ := append(e.Environ, "USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0", "GOGC=100") // GOGC is that of the tests
			process, err := instance.Run(func(ctx context.Context, stdout, stderr io.Writer) int {
				return program.Run(ctx, cli.Process{
					Args: strings.Fields(c.args), Environ: environ, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr,
				})
			})
			must.Succeed(t, err)
			s := &fixture.Service{T: t, Process: process}
			t.Cleanup(s.Stop)
			apiclient.OtherListeners.Store(process.Prometheus, nil)
			apiclient.OtherListeners.Store(process.Debug, nil)
			shown := string(apiclient.Call(t, "GET", "http://"+process.Prometheus+"/metrics", nil).WantStatus(t,
				http.StatusOK).Body)
			if !strings.Contains(shown, "\n"+c.there+"\n") {
				t.Errorf("%s is not there", c.there)
			}
			for absent := range strings.FieldsSeq(c.absent) {
				if strings.Contains(shown, absent) {
					t.Errorf("%s is there", absent)
				}
			}
			limits := http.StatusNotFound
			if strings.Contains(c.args, "ratelimit") {
				limits = http.StatusOK
			}
			for _, page := range []string{"/stats", "/rlconfig"} {
				apiclient.Call(t, "GET", "http://"+process.Debug+page, nil).WantStatus(t, limits)
			}
		})
	}
}
