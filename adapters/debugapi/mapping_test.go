package debugapi_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/debugapi"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
	"github.com/tollgate-dev/tollgate/test/must"
)

func openMapped(t *testing.T, mapping string) *fixture {
	t.Helper()
	return openWithConfig(t, debugapi.PrometheusConfig{Mapper: mapping})
}

// newSeries returns a series with one level and the given numbers of hits.
func newSeries(domain ratelimit.Domain, path string, total, over uint64) *decide.Series {
	one := &decide.Series{Domain: domain, Path: path, Levels: []string{path}, Hits: &ratelimit.Hits{}}
	one.Hits.Refused.Add(total)
	one.Hits.Over.Add(over)
	return one
}

func TestMapping(t *testing.T) {
	b := openMapped(t, "testdata/mapping.yaml")
	b.loadRules(t)
	b.decisions.series = []*decide.Series{newSeries("shop", "a", 3, 1), newSeries("shop", "b", 4, 2)}
	b.decisions.stats.FailedOpen.Add(1)
	b.decisions.stats.GlobalShadow.Add(5)
	for range 2 {
		b.statistics.RecordCall(60 * time.Millisecond)
	}
	want := []string{
		`# HELP limits_hits All hits.`,
		`limits_hits{domain="shop",rule="a"} 3`,
		`limits_hits{domain="shop",rule="b"} 4`,
		`limits_over{domain="shop"} 3`,
		`limits_calls 20`,
		`limits_took_seconds_bucket{method="ShouldRateLimit",le="0.001"} 0`,
		`limits_took_seconds_bucket{method="ShouldRateLimit",le="0.1"} 2`,
		`limits_took_seconds_sum{method="ShouldRateLimit"} 0.12`,
		`ratelimit_service_global_shadow_mode 5`, // has no mapping
	}
	for range 2 { // a second request returns the same
		body := b.getPath(t, "/metrics", http.StatusOK)
		wantLines(t, body, want...)
		for _, gone := range []string{
			"dropped", "go_goroutines", "ratelimit_service_rate_limit_total_hits", "store_fallback",
		} {
			if strings.Contains(body, gone) {
				t.Errorf("%s is shown in\n%s", gone, body)
			}
		}
	}
	b.decisions.series = b.decisions.series[1:]
	b.decisions.series[0].Hits.Over.Add(1)
	wantLines(t, b.getPath(t, "/metrics", http.StatusOK), `limits_over{domain="shop"} 4`)
	wantLines(t, b.getPath(t, "/stats", http.StatusOK), "ratelimit.service.rate_limit.shop.b.over_limit: 3")
	if n := strings.Count(b.logged.String(), "metric=go_goroutines"); n != 1 {
		t.Errorf("a reserved metric name was logged %d times, want once:\n%s", n, b.logged.String())
	}
}

// TestMappingOfTimes checks the metric of response times for each option of a mapping.
func TestMappingOfTimes(t *testing.T) {
	const match = "mappings:\n  - {match: ratelimit_server.*.response_time, name: took, labels: {me: $1}"
	tests := map[string]struct {
		mapping string
		want    string
	}{
		"summary": {match + "}", `took{me="ShouldRateLimit",quantile="0.5"} 60`},
		"quantiles": {
			match + ", quantiles: [{quantile: 0.2, error: 0.1}]}", `took{me="ShouldRateLimit",quantile="0.2"} 60`,
		},
		"histogram": {
			match + ", observer_type: histogram}", `took_bucket{me="ShouldRateLimit",le="10"} 0`,
		},
		"histogram options": {
			match + ", observer_type: histogram, histogram_options: {buckets: [70]}}",
			`took_bucket{me="ShouldRateLimit",le="70"} 1`,
		},
		"defaults": {
			"defaults: {timer_type: histogram, buckets: [80]}\n" + match + "}",
			`took_bucket{me="ShouldRateLimit",le="80"} 1`,
		},
		"no mapping": {"mappings: []", `ratelimit_server_ShouldRateLimit_response_time_sum 60`},
		"defaults without a mapping": {
			"defaults: {observer_type: histogram}", `ratelimit_server_ShouldRateLimit_response_time_bucket{le="10"} 0`,
		},
		"dropped":    {match + ", action: drop}", `ratelimit_server_ShouldRateLimit_total_requests 1`},
		"empty file": {"", `ratelimit_server_ShouldRateLimit_response_time_count 1`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mapping.yaml")
			must.Succeed(t, os.WriteFile(path, []byte(test.mapping), 0o600))
			b := openMapped(t, path)
			b.statistics.RecordCall(60 * time.Millisecond)
			wantLines(t, b.getPath(t, "/metrics", http.StatusOK), test.want)
		})
	}
}

func TestMappingIsRefused(t *testing.T) {
	files, err := filepath.Glob("testdata/refused/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range append(files, "testdata/missing.yaml", "testdata") {
		b := &fixture{decisions: &fakeDecider{}}
		_, err := debugapi.NewStatistics(debugapi.PrometheusConfig{Mapper: path},
			statistics.New(nil, b.decisions, statistics.Options{}), b.newLog())
		if err == nil || !strings.HasPrefix(err.Error(), "PROMETHEUS_MAPPER_YAML: ") ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestResponseTimesInMilliseconds(t *testing.T) {
	b := openWithConfig(t, debugapi.PrometheusConfig{Milliseconds: true})
	b.statistics.RecordCall(60 * time.Microsecond)
	wantLines(t, b.getPath(t, "/metrics", http.StatusOK),
		`ratelimit_service_response_time_seconds_bucket{grpc_method="ShouldRateLimit",le="0.05"} 0`,
		`ratelimit_service_response_time_seconds_bucket{grpc_method="ShouldRateLimit",le="0.1"} 1`,
		`ratelimit_service_response_time_seconds_bucket{grpc_method="ShouldRateLimit",le="5000"} 1`,
		`ratelimit_service_response_time_seconds_sum{grpc_method="ShouldRateLimit"} 0.06`,
	)
}
