package ratelimit

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/apiclient"
	"github.com/tollgate-dev/tollgate/test/acceptance/internal/fixture"
)

// TestDecisionsInTheLog checks that the debug log explains each decision: it has a text for each
// mistake of a caller, and the request id of each call. The test makes each call over gRPC and over
// /json.
func TestDecisionsInTheLog(t *testing.T) {
	e := newRulesEnvironment(t, `domain: shop
descriptors:
  - key: customer
    rate_limit: {unit: day, requests_per_unit: 2}
  - key: path
    value: /pay
    rate_limit: {unit: day, requests_per_unit: 0}
`)
	s := e.Start(t, "LOG_LEVEL=debug", "LOG_FORMAT=json")
	tests := []struct {
		name   string
		domain string
		pairs  []string
		want   map[string]any
	}{
		{"unknown domain", "shopp", []string{"customer", "ada"}, map[string]any{"no_rule": "the domain is not configured"}},
		{"unknown key", "shop", []string{"custmer", "ada"}, map[string]any{"no_rule": `no rule has the key "custmer" at level 1`}},
		{"wrong value", "shop", []string{"path", "/buy"}, map[string]any{
			"no_rule": `no rule of the key "path" at level 1 has the value "/buy"`,
		}},
		{"wrong depth", "shop", []string{"customer", "ada", "path", "/pay"}, map[string]any{
			"no_rule": "the rules end at level 1, but the descriptor has more entries",
		}},
		{"matched", "shop", []string{"customer", "ada"}, map[string]any{
			"rule": "customer", "limit": "2 per day", "answered_from": "counter", "code": "OK", "hits": 1.0,
		}},
		{"over limit", "shop", []string{"path", "/pay"}, map[string]any{
			"rule": "path_/pay", "limit": "0 per day", "remaining": 0.0, "code": "OVER_LIMIT", "overall_code": "OVER_LIMIT",
		}},
	}
	ids := map[string][]string{}
	for i, test := range tests {
		var header metadata.MD
		if _, err := s.NewRateLimitClient(t).ShouldRateLimit(t.Context(), fixture.NewRateLimitRequest(test.domain, test.pairs...), grpc.Header(&header)); err != nil {
			t.Fatal(err)
		}
		var entries []map[string]string
		for pair := range slices.Chunk(test.pairs, 2) {
			entries = append(entries, map[string]string{"key": pair[0], "value": pair[1]})
		}
		body := map[string]any{"domain": test.domain, "descriptors": []any{map[string]any{"entries": entries}}}
		byJSON := apiclient.Call(t, "POST", s.RateLimitAPI+"/json", body, "X-Request-Id", fmt.Sprint("json-", i))
		ids[test.name] = []string{strings.Join(header.Get("x-request-id"), " "), byJSON.Header.Get("X-Request-Id")}
	}
	s.Stop()
	lines := readDecisions(t, s)
	for _, test := range tests {
		for _, id := range ids[test.name] {
			line := lines[id]
			if line == nil {
				t.Errorf("%s: no line of the log names %q", test.name, id)
				continue
			}
			for field, want := range test.want {
				if line[field] != want {
					t.Errorf("%s: %s is %v, want %v, in %v", test.name, field, line[field], want, line)
				}
			}
		}
	}
}

// readDecisions returns the log lines of decisions by request id.
func readDecisions(t *testing.T, s *fixture.Service) map[string]map[string]any {
	t.Helper()
	byID := map[string]map[string]any{}
	for line := range strings.Lines(s.Process.Log()) {
		fields := fixture.ParseLogLine(t, line)
		if fields["@message"] == "a rate limit descriptor was decided" {
			id, _ := fields["request_id"].(string)
			byID[id] = fields
		}
	}
	return byID
}

// TestDecisionsAreNotLoggedAtInfo checks that these lines are logged at the debug level only.
func TestDecisionsAreNotLoggedAtInfo(t *testing.T) {
	s := newRulesEnvironment(t, newLimitRules(3)).Start(t)
	fixture.WantOverallCode(t, s.NewRateLimitClient(t), fixture.NewRateLimitRequest("d", "k", "x"), ratelimit.RateLimitResponse_OK)
	s.Stop()
	if strings.Contains(s.Process.Log(), "descriptor was decided") {
		t.Errorf("the log has decisions:\n%s", s.Process.Log())
	}
}

// TestUnknownDomainsAreCounted checks that a misspelt domain appears in the statistics, and that
// callers cannot fill the statistics with invented domains.
func TestUnknownDomainsAreCounted(t *testing.T) {
	s := newRulesEnvironment(t, newLimitRules(3)).Start(t)
	const metric = "ratelimit_service_rate_limit_domain_not_found"
	c := s.NewRateLimitClient(t)
	for range 2 {
		fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest("dd", "k", "x"), ratelimit.RateLimitResponse_OK)
	}
	fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest("d", "unknown", "x"), ratelimit.RateLimitResponse_OK)
	for n := range 300 {
		fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest(fmt.Sprint("made-up-", n), "k", "x"), ratelimit.RateLimitResponse_OK)
	}
	if n := s.Metric(metric, "domain", "dd"); n != 2 {
		t.Errorf("%v descriptors in the misspelt domain, want 2", n)
	}
	if n := s.Metric(metric, "domain", "_other"); n != 201 {
		t.Errorf("%v descriptors in other domains, want 201", n)
	}
	stats := string(apiclient.Call(t, "GET", s.Debug+"/stats", nil).WantStatus(t, http.StatusOK).Body)
	if !strings.Contains(stats, "\nratelimit.service.rate_limit.dd.domain_not_found: 2\n") {
		t.Errorf("/stats has\n%s", stats)
	}
}
