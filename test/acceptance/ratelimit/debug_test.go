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
			"unknown domain", "shopp", []string{"customer", "ada"}, map[string]any{
				"no_rule": "the domain is not configured",
			},
		},
		{
			"unknown key", "shop", []string{"custmer", "ada"}, map[string]any{
				"no_rule": `no rule has the key "custmer" at level 1`,
			},
		},
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

// TestUnknownDomainsAreCounted checks that a misspelt domain appears in the statistics, and that
// callers cannot fill the statistics with invented domains.
func TestUnknownDomainsAreCounted(t *testing.T) {
	t.Parallel()
	s := newRulesEnvironment(t, newLimitRules(3)).Start(t)
	const metric = "ratelimit_service_rate_limit_domain_not_found"
	c := s.NewRateLimitClient(t)
	for range 2 {
		fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest("dd", "k", "x"), ratelimit.RateLimitResponse_OK)
	}
	fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest("d", "unknown", "x"), ratelimit.RateLimitResponse_OK)
	for n := range 300 {
		fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest(fmt.Sprint("made-up-", n), "k", "x"),
			ratelimit.RateLimitResponse_OK)
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

// TestExplain checks that the debug listener and the command say which rule applies and why, and
// count nothing.
func TestExplain(t *testing.T) {
	t.Parallel()
	e := newRulesEnvironment(t, `domain: shop
descriptors:
  - key: customer
    value: ada
    rate_limit: {unit: day, requests_per_unit: 2, name: vip}
  - key: customer
    value: "a*"
    shadow_mode: true
    rate_limit: {unit: day, requests_per_unit: 3}
  - key: path
    rate_limit: {unit: minute, requests_per_unit: 1, replaces: [{name: vip}], name: path}
`)
	s := e.Start(t, "CACHE_KEY_PREFIX=p_")
	question := `{"domain":"shop","descriptors":[{"entries":[{"key":"customer","value":"anna"}]},{"entries":[{"key":"customer","value":"ada"}]},` +
		`{"entries":[{"key":"path","value":"/"}]},{"entries":[{"key":"nothing","value":""}]}]}`
	var got struct {
		Descriptors []struct {
			Matched bool
			Rule    *struct {
				Domain, File, Algorithm, ReplacedBy string
				Path                                []string
				Line                                int
				Limit                               map[string]any
				ShadowMode                          bool
			}
			Tried []struct {
				Level                     int
				Key, Value, Kind, Pattern string
				Matched                   bool
				Why                       string
			}
			Why, CounterKey string
		}
	}
	for range 3 {
		apiclient.Call(t, "POST", s.Debug+"/ratelimit/explain", question).WantStatus(t, http.StatusOK).Decode(t, &got)
	}
	if len(got.Descriptors) != 4 {
		t.Fatalf("%d descriptors are explained", len(got.Descriptors))
	}
	anna, ada, path, nothing := got.Descriptors[0], got.Descriptors[1], got.Descriptors[2], got.Descriptors[3]
	if r := anna.Rule; !anna.Matched || r.Domain != "shop" || !slices.Equal(r.Path, []string{"customer=a*"}) ||
		r.Line != 6 || !strings.HasSuffix(r.File, "rules.yaml") ||
		r.Algorithm != "fixed_window" || !r.ShadowMode || fmt.Sprint(r.Limit) != "map[requestsPerUnit:3 unit:DAY]" ||
		!strings.HasPrefix(anna.CounterKey, "p_4:shop8:customer4:anna/86400/") {
		t.Errorf("anna: %+v, rule %+v", anna, r)
	}
	if len(anna.Tried) != 2 || anna.Tried[0].Kind != "exact" || anna.Tried[0].Pattern != "ada" ||
		anna.Tried[0].Matched || anna.Tried[1].Kind != "wildcard" || !anna.Tried[1].Matched ||
		anna.Tried[1].Value != "anna" {
		t.Errorf("anna: tried %+v", anna.Tried)
	}
	if ada.Rule.ReplacedBy != "path" || ada.CounterKey != "" ||
		fmt.Sprint(ada.Rule.Limit) != "map[name:vip requestsPerUnit:2 unit:DAY]" {
		t.Errorf("ada: %+v, rule %+v", ada, ada.Rule)
	}
	if path.Rule.ReplacedBy != "" || !slices.Equal(path.Rule.Path, []string{"path"}) || path.Tried[0].Kind != "key" {
		t.Errorf("path: %+v", path)
	}
	if nothing.Matched || nothing.Rule != nil || nothing.Why != `no rule has the key "nothing" at level 1` ||
		len(nothing.Tried) != 0 {
		t.Errorf("nothing: %+v", nothing)
	}
	client := s.NewRateLimitClient(t)
	for _, want := range []ratelimit.RateLimitResponse_Code{
		ratelimit.RateLimitResponse_OK, ratelimit.RateLimitResponse_OVER_LIMIT,
	} {
		fixture.WantOverallCode(t, client, fixture.NewRateLimitRequest("shop", "path", "/"), want)
	}
	for _, wrong := range []string{
		"", "{", `{"domain":"shop"}`, `{"domain":"","descriptors":[{}]}`, `{"domain":"shop","unknown":1}`,
	} {
		var refused struct{ Error string }
		if apiclient.Call(t, "POST", s.Debug+"/ratelimit/explain", wrong).WantStatus(t, http.StatusBadRequest).Decode(t,
			&refused); refused.Error == "" {
			t.Errorf("%q: no error", wrong)
		}
	}
	apiclient.Call(t, "POST", s.Debug+"/ratelimit/explain", strings.Repeat(" ", 2<<20)).WantStatus(t,
		http.StatusRequestEntityTooLarge)
	apiclient.Call(t, "GET", s.Debug+"/ratelimit/explain", nil).WantStatus(t, http.StatusMethodNotAllowed)

	var said struct {
		Descriptors []struct{ CounterKey, Why string }
	}
	e.Environ = append(e.Environ, "CACHE_KEY_PREFIX=p_")
	fixture.DecodeJSON(t,
		e.RunCommand(t, "", "ratelimit", "explain", e.RulesDir, "--domain", "shop", "--descriptors", "customer=anna",
			"--descriptors", "nothing=x", "--output", "json"), &said)
	if len(said.Descriptors) != 2 || said.Descriptors[0].CounterKey != anna.CounterKey ||
		said.Descriptors[1].Why != nothing.Why {
		t.Errorf("the command says %+v", said)
	}
	table := e.RunCommand(t, "", "ratelimit", "explain", e.RulesDir, "--domain", "shop", "--descriptors",
		"customer=ada", "--descriptors", "path=/")
	for _, want := range []string{
		"rule: customer=ada: 2 per day", "replaced by: path", "the value is equal", "rules.yaml:3",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the command does not say %q:\n%s", want, table)
		}
	}
	for _, args := range [][]string{
		{"--domain", "", "--descriptors", "a=b"}, {"--domain", "shop", "--descriptors", "a"}, {"--domain", "shop"},
	} {
		if _, stderr, code := e.TryCommand(t, "",
			append([]string{"ratelimit", "explain", e.RulesDir}, args...)...); code != 1 ||
			!strings.Contains(stderr, "--d") && !strings.Contains(stderr, "required flag") {
			t.Errorf("%v: %d, %s", args, code, stderr)
		}
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
