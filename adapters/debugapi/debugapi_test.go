package debugapi_test

import (
	"bytes"
	"context"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/debugapi"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
	"github.com/tollgate-dev/tollgate/test/must"
)

// noopReporter ignores all reports.
type noopReporter struct{}

func (noopReporter) Report(any) {}

// fakeDecider returns the numbers that a test sets.
type fakeDecider struct {
	stats   decide.Stats
	series  []*decide.Series
	unknown map[ratelimit.Domain]uint64
}

func (d *fakeDecider) Stats() *decide.Stats             { return &d.stats }
func (d *fakeDecider) Series() iter.Seq[*decide.Series] { return slices.Values(d.series) }
func (d *fakeDecider) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] {
	return maps.All(d.unknown)
}

// fixture contains a debug listener and the sources of its pages.
type fixture struct {
	rules      *reload.Rules
	decisions  *fakeDecider
	statistics *debugapi.Statistics
	url        string
	logged     bytes.Buffer
}

// newLog returns a log that writes to the field logged.
func (b *fixture) newLog() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(&b.logged)
	return logrus.NewEntry(log)
}

func openFixture(t *testing.T) *fixture {
	t.Helper()
	return openWithConfig(t, debugapi.PrometheusConfig{})
}

func openWithConfig(t *testing.T, c debugapi.PrometheusConfig) *fixture {
	t.Helper()
	b := &fixture{rules: reload.New(ruleset.Options{}, noopReporter{}), decisions: &fakeDecider{}}
	metrics := prometheus.NewRegistry()
	var err error
	b.statistics, err = debugapi.NewStatistics(c,
		statistics.New(b.rules, b.decisions, statistics.Options{}), b.newLog())
	must.Succeed(t, err)
	b.statistics.Measure(metrics)
	s, cleanup, err := debugapi.Open(context.Background(), debugapi.Config{Host: "127.0.0.1"}, debugapi.Ports{
		Rules: b.rules, Statistics: b.statistics, Metrics: promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}),
	})
	must.Succeed(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve() }()
	t.Cleanup(func() {
		defer cleanup()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	b.url = "http://" + s.Addr().String()
	return b
}

func (b *fixture) getPath(t *testing.T, path string, status int) string {
	t.Helper()
	r, err := http.Get(b.url + path)
	must.Succeed(t, err)
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	must.Succeed(t, err)
	if r.StatusCode != status {
		t.Errorf("%s: status %d, want %d", path, r.StatusCode, status)
	}
	return string(body)
}

func wantLines(t *testing.T, body string, lines ...string) {
	t.Helper()
	all := strings.Split(body, "\n")
	for _, line := range lines {
		if !slices.Contains(all, line) {
			t.Errorf("line %q is missing in:\n%s", line, body)
		}
	}
}

func newText(s string) ruleset.Text { return ruleset.Text{Value: s} }

func (b *fixture) loadRules(t *testing.T) {
	t.Helper()
	yes := true
	err := b.rules.Apply([]ruleset.Source{{Domain: newText("shop"), Descriptors: []ruleset.Descriptor{
		{
			Key: newText("user"), Value: newText("a:b"), Shadow: &yes, QuotaMode: true,
			Limit: &ruleset.Limit{
				Unit: &ruleset.Text{Value: "minute"}, Requests: &ruleset.Requests{Count: 5},
				Name: "n", Replaces: []ruleset.Text{newText("m")},
			},
			Descriptors: []ruleset.Descriptor{{Key: newText("op\n"), Limit: &ruleset.Limit{Unlimited: true}}},
		},
	}}})
	must.Succeed(t, err)
}

func TestIndexListsThePaths(t *testing.T) {
	b := openFixture(t)
	body := b.getPath(t, "/", http.StatusOK)
	for _, path := range []string{"/debug/pprof/", "/rlconfig", "/stats", "/metrics"} {
		if !strings.Contains(body, path+": ") {
			t.Errorf("%s is not listed in:\n%s", path, body)
		}
		b.getPath(t, path, http.StatusOK)
	}
	b.getPath(t, "/debug/pprof/cmdline", http.StatusOK)
	b.getPath(t, "/debug/pprof/goroutine?debug=1", http.StatusOK)
	b.getPath(t, "/nothing", http.StatusNotFound)
}

func TestRules(t *testing.T) {
	b := openFixture(t)
	wantLines(t, b.getPath(t, "/rlconfig", http.StatusOK), "no configuration is loaded")
	b.loadRules(t)
	wantLines(t, b.getPath(t, "/rlconfig", http.StatusOK),
		"shop.user_a:b: unit=MINUTE requests_per_unit=5, shadow_mode: true, quota_mode: true, name: n, replaces: m",
		"shop.user_a:b.op_: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false, unlimited: true")
}

func TestStatistics(t *testing.T) {
	b := openFixture(t)
	b.loadRules(t)
	_ = b.rules.Apply([]ruleset.Source{{}}) // increments the number of refused configurations
	for r := range b.rules.Current().Rules() {
		r.Hits.Refused.Add(7)
		r.Hits.Over.Add(2)
	}
	same := &ratelimit.Hits{}
	same.Refused.Add(3)
	b.decisions.series = []*decide.Series{
		{Domain: "shop", Path: "user_a:b", Levels: []string{"user_a:b"}, Hits: same},
		{Domain: "shop", Path: "user_\xff", Levels: []string{"user_\xff"}, Hits: &ratelimit.Hits{}},
	}
	b.decisions.stats.StoreErrors.Add(4)
	b.decisions.stats.GlobalShadow.Add(5)
	b.statistics.RecordCall(60 * time.Microsecond)

	wantLines(t, b.getPath(t, "/stats", http.StatusOK),
		"ratelimit.service.config_load_success: 1",
		"ratelimit.service.config_load_error: 1",
		"ratelimit.service.global_shadow_mode: 5",
		"ratelimit.service.call.should_rate_limit.store_error: 4",
		"ratelimit_server.ShouldRateLimit.total_requests: 1",
		"ratelimit.service.rate_limit.shop.user_a_b.total_hits: 10",
		"ratelimit.service.rate_limit.shop.user_a_b.over_limit: 2",
		"ratelimit.service.rate_limit.shop.user_a_b.op_.total_hits: 7",
	)
	wantLines(t, b.getPath(t, "/metrics", http.StatusOK),
		`ratelimit_service_config_load_success 1`,
		`ratelimit_service_config_load_error 1`,
		`ratelimit_service_should_rate_limit_error{err_type="store_error"} 4`,
		`ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 1`,
		`ratelimit_service_response_time_seconds_bucket{grpc_method="ShouldRateLimit",le="5e-05"} 0`,
		`ratelimit_service_response_time_seconds_bucket{grpc_method="ShouldRateLimit",le="0.0001"} 1`,
		`ratelimit_service_rate_limit_total_hits{domain="shop",key1="user_a_b",key2="",rule="user_a_b"} 10`,
		`ratelimit_service_rate_limit_total_hits{domain="shop",key1="user_a_b",key2="op_",rule="user_a_b.op_"} 7`,
	)
}

func TestConfig(t *testing.T) {
	for want, c := range map[string]debugapi.Config{
		"DEBUG_PORT": {Port: 65536},
	} {
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want+": ") {
			t.Errorf("%s: got %v", want, err)
		}
	}
	must.Succeed(t, (debugapi.Config{Port: 6070}).Validate())
	taken := openFixture(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(taken.url, "http://"), ":")
	n := 0
	for _, digit := range port {
		n = n*10 + int(digit-'0')
	}
	if _, _, err := debugapi.Open(context.Background(), debugapi.Config{Host: "127.0.0.1", Port: n},
		debugapi.Ports{}); err == nil || !strings.Contains(err.Error(), port) {
		t.Errorf("a port in use: %v, want an error with the port %s", err, port)
	}
}

func TestRequestID(t *testing.T) {
	b := openFixture(t)
	for sent, kept := range map[string]bool{"a/b:c": true, strings.Repeat("x", 129): false, "": false} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/stats", nil)
		must.Succeed(t, err)
		r.Header.Set("X-Request-Id", sent)
		answer, err := http.DefaultClient.Do(r)
		must.Succeed(t, err)
		_ = answer.Body.Close() // only its header is read
		if got := answer.Header.Get("X-Request-Id"); (got == sent) != kept || !kept && len(got) != 24 {
			t.Errorf("sent the id %q, got %q", sent, got)
		}
	}
}
