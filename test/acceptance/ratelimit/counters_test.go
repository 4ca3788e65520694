package ratelimit

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestFloodOpensNoOwnLimit fills the counters in the process through the rate limit service. The
// API's own limits, which protect sign-in, must not lose their counts, and the operator must see
// what happened.
func TestFloodOpensNoOwnLimit(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	fixture.WriteFile(t, filepath.Join(e.RulesDir, "rules.yaml"),
		"domain: flood\ndescriptors:\n  - {key: value, rate_limit: {unit: day, requests_per_unit: 10}}\n")
	s := e.Start(t, "AUTH_RATE_LIMIT=3", "COUNTERS_IN_PROCESS_MAX=100")
	login := func() apiclient.Response { return apiclient.Call(t, "POST", s.API+"/auth/login", "{}") }
	for range 3 {
		login().WantStatus(t, http.StatusBadRequest)
	}
	login().WantStatus(t, http.StatusTooManyRequests)
	for n := range 1000 {
		if status, body := postRateLimitJSON(t, s,
			fixture.NewRateLimitRequest("flood", "value", fmt.Sprint(n))); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
	}
	login().WantStatus(t, http.StatusTooManyRequests)
	if n := s.Metric("tollgate_counters_evicted_total", "store", "ratelimit"); n < 800 {
		t.Errorf("%v counters of rate limits were forgotten, want about 900", n)
	}
	if n := s.Metric("tollgate_counters_evicted_total", "store", "api"); n != 0 {
		t.Errorf("%v counters of the API were forgotten", n)
	}
	s.AwaitLog("COUNTERS_IN_PROCESS_MAX")
}
