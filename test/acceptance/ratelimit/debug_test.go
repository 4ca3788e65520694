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

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestDecisionsInTheLog checks that the debug log explains each decision: it has a text for each
// mistake of a caller, and the request id of each call. The test makes each call over gRPC and over
// /json.
func TestDecisionsInTheLog(t *testing.T) {
	t.Parallel()
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
		{
			"unknown domain", "shopp", []string{"customer", "ada"},
			map[string]any{"no_rule": "the domain is not configured"},
		},
		{
			"unknown key", "shop", []string{"custmer", "ada"},
			map[string]any{"no_rule": `no rule has the key "custmer" at level 1`},
		},
		{"matched", "shop", []string{"customer", "ada"}, map[string]any{
			"rule": "customer", "limit": "2 per day", "answered_from": "counter", "code": "OK", "hits": 1.0,
		}},
		{"over limit", "shop", []string{"path", "/pay"}, map[string]any{
			"rule": "path_/pay", "limit": "0 per day", "remaining": 0.0, "code": "OVER_LIMIT",
			"overall_code": "OVER_LIMIT",
		}},
	}
	ids := map[string][]string{}
	for i, test := range tests {
		var header metadata.MD
		if _, err := s.NewRateLimitClient(t).ShouldRateLimit(t.Context(),
			fixture.NewRateLimitRequest(test.domain, test.pairs...), grpc.Header(&header)); err != nil {
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
	t.Parallel()
	s := newRulesEnvironment(t, newLimitRules(3)).Start(t)
	fixture.WantOverallCode(t, s.NewRateLimitClient(t), fixture.NewRateLimitRequest("d", "k", "x"),
		ratelimit.RateLimitResponse_OK)
	s.Stop()
	if strings.Contains(s.Process.Log(), "descriptor was decided") {
		t.Errorf("the log has decisions:\n%s", s.Process.Log())
	}
}

// TestExplain checks that the debug listener and the command say which rule applies and why, and
// count nothing. What they say of each rule is checked in core/ratelimit/ruleset.
func TestExplain(t *testing.T) {
	t.Parallel()
	e := newRulesEnvironment(t, `domain: shop
descriptors:
  - key: customer
    value: "a*"
    rate_limit: {unit: day, requests_per_unit: 1, name: vip}
`)
	e.Environ = append(e.Environ, "CACHE_KEY_PREFIX=p_")
	s := e.Start(t)
	const question = `{"domain":"shop","descriptors":[{"entries":[{"key":"customer","value":"anna"}]},` +
		`{"entries":[{"key":"nothing","value":""}]}]}`
	type explanation struct {
		Descriptors []struct {
			Matched bool
			Rule    *struct {
				File, Algorithm string
				Path            []string
				Line            int
			}
			Tried           []struct{ Kind, Pattern, Value string }
			Why, CounterKey string
		}
	}
	var got, said explanation
	for range 3 {
		apiclient.Call(t, "POST", s.Debug+"/ratelimit/explain", question).WantStatus(t, http.StatusOK).Decode(t, &got)
	}
	if len(got.Descriptors) != 2 {
		t.Fatalf("%d descriptors are explained", len(got.Descriptors))
	}
	anna, nothing := got.Descriptors[0], got.Descriptors[1]
	if r := anna.Rule; !anna.Matched || !slices.Equal(r.Path, []string{"customer=a*"}) || r.Line != 3 ||
		!strings.HasSuffix(r.File, "rules.yaml") || r.Algorithm != "fixed_window" || len(anna.Tried) != 1 ||
		anna.Tried[0].Kind != "wildcard" || !strings.HasPrefix(anna.CounterKey, "p_4:shop8:customer4:anna/86400/") {
		t.Errorf("anna: %+v, rule %+v", anna, r)
	}
	if nothing.Matched || nothing.Rule != nil || nothing.Why != `no rule has the key "nothing" at level 1` {
		t.Errorf("nothing: %+v", nothing)
	}
	fixture.WantOverallCode(t, s.NewRateLimitClient(t), fixture.NewRateLimitRequest("shop", "customer", "anna"),
		ratelimit.RateLimitResponse_OK)
	for body, status := range map[string]int{"{": 400, `{"domain":"shop"}`: 400, strings.Repeat(" ", 2<<20): 413} {
		apiclient.Call(t, "POST", s.Debug+"/ratelimit/explain", body).WantStatus(t, status)
	}
	apiclient.Call(t, "GET", s.Debug+"/ratelimit/explain", nil).WantStatus(t, http.StatusMethodNotAllowed)

	asked := []string{
		"ratelimit", "explain", e.RulesDir, "--domain", "shop", "--descriptors", "customer=anna", "--descriptors",
		"nothing=x",
	}
	e.ReadCommand(t, &said, asked...)
	if len(said.Descriptors) != 2 || said.Descriptors[0].CounterKey != anna.CounterKey ||
		said.Descriptors[1].Why != nothing.Why {
		t.Errorf("the command says %+v", said)
	}
	if table := e.RunCommand(t, "", asked...); !strings.Contains(table, "rule: customer=a*: 1 per day") {
		t.Errorf("the command says\n%s", table)
	}
}

// TestHotKeys checks the list of the keys with the most hits: over both transports, with their
// refusals, and without what is not counted.
func TestHotKeys(t *testing.T) {
	t.Parallel()
	e := newRulesEnvironment(t, `domain: shop
descriptors:
  - key: customer
    rate_limit: {unit: day, requests_per_unit: 2}
  - key: group
    value: "g*"
    share_threshold: true
    rate_limit: {unit: day, requests_per_unit: 100}
  - key: free
    rate_limit: {unlimited: true}
`)
	s := e.Start(t)
	client := s.NewRateLimitClient(t)
	call := func(pairs ...string) {
		if _, err := client.ShouldRateLimit(t.Context(), fixture.NewRateLimitRequest("shop", pairs...)); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		call("customer", "ada")
	}
	call("customer", "bob")
	call("group", "g1")
	call("group", "g2")
	call("free", "x")
	call("customer", "ada", "deeper", "x")
	var got any
	apiclient.Call(t, "GET", s.Debug+"/ratelimit/hot", nil).WantStatus(t, http.StatusOK).Decode(t, &got)
	const want = `map[rules:[map[domain:shop keys:[map[descriptor:customer=ada error:0 hits:5 refused:3] map[descriptor:customer=bob error:0 hits:1 refused:0]] path:[customer]] ` +
		`map[domain:shop keys:[map[descriptor:group=g* error:0 hits:2 refused:0]] path:[group=g*]]]]`
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}
