package acceptance

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
)

// TestFloodOpensNoOwnLimit fills the counters in the process through the rate limit service. The API's own limits, which guard
// sign-in, must stay as they are, and the operator must see what happened.
func TestFloodOpensNoOwnLimit(t *testing.T) {
	e := newEnvironment(t, "embedded")
	write(t, filepath.Join(e.rules, "rules.yaml"), "domain: flood\ndescriptors:\n  - {key: value, rate_limit: {unit: day, requests_per_unit: 10}}\n")
	s := e.start(t, "AUTH_RATE_LIMIT=3", "COUNTERS_IN_PROCESS_MAX=100")
	login := func() answer { return call(t, "POST", s.api+"/auth/login", "{}") }
	for range 3 {
		login().want(t, http.StatusBadRequest)
	}
	login().want(t, http.StatusTooManyRequests)
	for n := range 1000 {
		if status, body := s.postJSON(t, request("flood", "value", fmt.Sprint(n))); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
	}
	login().want(t, http.StatusTooManyRequests)
	if n := s.metric("tollgate_counters_evicted_total", "store", "ratelimit"); n < 800 {
		t.Errorf("%v counters of rate limits were forgotten, want about 900", n)
	}
	if n := s.metric("tollgate_counters_evicted_total", "store", "api"); n != 0 {
		t.Errorf("%v counters of the API were forgotten", n)
	}
	s.awaitLog("COUNTERS_IN_PROCESS_MAX")
}
