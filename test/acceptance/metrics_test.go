package acceptance

import (
	"bytes"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// metrics returns all metrics of an instance by name.
func (s *service) metrics() map[string]*dto.MetricFamily {
	s.t.Helper()
	body := call(s.t, "GET", s.debug+"/metrics", nil).want(s.t, http.StatusOK).body
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	return families
}

// metric returns the value of a counter or gauge with the given labels, name and
// value in turn; of a histogram, how many were observed. Those that are not
// there count 0.
func (s *service) metric(name string, labels ...string) float64 {
	s.t.Helper()
	var sum float64
	for _, m := range s.metrics()[name].GetMetric() {
		if hasLabels(m, labels) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

func hasLabels(m *dto.Metric, labels []string) bool {
	for pair := range slices.Chunk(labels, 2) {
		if !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool {
			return l.GetName() == pair[0] && l.GetValue() == pair[1]
		}) {
			return false
		}
	}
	return true
}

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
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
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

// allMeasured turns on what has metrics only where it is on: TLS, and checks of packages.
func (e *environment) allMeasured(t *testing.T) []string {
	t.Helper()
	files := tlsFiles{filepath.Join(e.dir, "cert.pem"), filepath.Join(e.dir, "key.pem")}
	files.put(t, testcert.NewAuthority(t))
	return []string{
		"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=" + files.cert, "GRPC_SERVER_TLS_KEY=" + files.key, "PACKAGE_CHECKS=enforce",
	}
}

// TestMetricsAreDocumented wants each metric of docs/metrics.md at /metrics of a
// service that nobody has asked anything, with the type and labels of the page,
// and on the page each metric of ours that is there.
func TestMetricsAreDocumented(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		live, documented := e.start(t, e.allMeasured(t)...).metrics(), documentedMetrics(t)
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

// TestLogIsCounted wants as many lines counted as the log has, also those from
// before the first listener.
func TestLogIsCounted(t *testing.T) {
	s := newEnvironment(t, "embedded").start(t)
	for _, level := range []string{"warning", "error"} { // what is said later is of another level
		got, want := s.metric("tollgate_log_entries_total", "level", level), strings.Count(s.process.Log(), `"level":"`+level+`"`)
		if int(got) != want {
			t.Errorf("%v lines of level %s are counted, the log has %d", got, level, want)
		}
	}
}

// TestRequestsMoveMetrics wants requests counted by route, refusals by limit, and
// batches of hits where a store outside of the process counts them.
func TestRequestsMoveMetrics(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t, "REGISTRY_RATE_LIMIT=2")
		const list = "/v0.1/servers"
		call(t, "GET", s.api+list, nil).want(t, http.StatusOK)
		call(t, "GET", s.api+list+"/com.example%2Fnone/versions/1.0.0", nil).want(t, http.StatusNotFound)
		call(t, "GET", s.api+list, nil).want(t, http.StatusTooManyRequests)
		for _, want := range [][]string{
			{"tollgate_http_requests_total", "part", "registry", "route", list, "method", "GET", "code", "200"},
			{"tollgate_http_requests_total", "route", list + "/{serverName}/versions/{version}", "code", "404"},
			{"tollgate_http_requests_total", "part", "registry", "route", "none", "code", "429"},
			{"tollgate_http_request_duration_seconds", "part", "registry", "route", list, "method", "GET"},
			{"tollgate_throttled_total", "scope", "registry"},
		} {
			if got := s.metric(want[0], want[1:]...); got != 1 {
				t.Errorf("%v is %v, want 1", want, got)
			}
		}
		for _, name := range []string{"tollgate_counter_store_requests_total", "tollgate_counter_store_request_duration_seconds"} {
			if got := s.metric(name, "operation", "add"); got > 0 != e.shared {
				t.Errorf("%s is %v", name, got)
			}
		}
		if got := s.metric("go_sql_open_connections", "db_name", "records"); got < 1 {
			t.Errorf("%v connections to the database are open", got)
		}
	})
}

// TestMetricsOfSomeParts wants the metrics of the parts that run, and of no
// others, at the listener for Prometheus, whichever parts those are.
func TestMetricsOfSomeParts(t *testing.T) {
	for _, c := range []struct{ args, there, absent string }{
		{"serve --only methods", `tollgate_http_requests_total{code="500",method="GET",part="methods",route="/v2/api/methods.json"} 0`, `part="auth" ratelimit_ tollgate_logins_ tollgate_publications_ tollgate_plugin_ tollgate_session_checks_`},
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
			e := newEnvironment(t, "embedded")
			environ := append(e.environ, "USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0")
			process, err := instance.Start(filepath.Join(built, "tollgate"), environ, strings.Fields(c.args)...)
			if err != nil {
				t.Fatal(err)
			}
			s := &service{t: t, process: process}
			t.Cleanup(s.stop)
			undescribed.Store(process.Prometheus, nil)
			undescribed.Store(process.Debug, nil)
			shown := string(call(t, "GET", "http://"+process.Prometheus+"/metrics", nil).want(t, http.StatusOK).body)
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
				call(t, "GET", "http://"+process.Debug+page, nil).want(t, limits)
			}
		})
	}
}
