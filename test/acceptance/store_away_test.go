package acceptance

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// TestOwnLimitsWithoutTheCounterStore wants people to sign in and to work while the counter store is
// away, within the limits of the API, where the failure mode covers that, and 503 below /auth where it
// does not.
func TestOwnLimitsWithoutTheCounterStore(t *testing.T) {
	e := production(t)
	p := e.newPerson(t, "ada@example.com")
	for _, mode := range []string{"error", "closed", "open", "local"} {
		s := e.start(t, "KVSTORE_URL=127.0.0.1:1", "KVSTORE_FAILURE_MODE="+mode, "AUTH_RATE_LIMIT=6", "API_RATE_LIMIT=3",
			"REGISTRY_RATE_LIMIT=2", "STEP_UP_LIMIT=2")
		ready := call(t, "GET", s.api+"/ready", nil)
		if mode == "error" || mode == "closed" {
			ready.wantReadiness(t, http.StatusServiceUnavailable, "unavailable")
			call(t, "POST", s.api+"/auth/login", "{}").want(t, http.StatusServiceUnavailable)
			call(t, "GET", s.api+"/v0.1/servers", nil).want(t, http.StatusOK)
			continue
		}
		ready.wantReadiness(t, http.StatusOK, "degraded")
		p.login(t, s)
		for left := 1; left >= 0; left-- {
			wantLimit(t, p.post(t, s, "/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}).want(t, http.StatusOK), "6", strconv.Itoa(left+3))
		}
		p.post(t, s, "/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}).want(t, http.StatusTooManyRequests)
		call(t, "GET", s.api+"/auth/session", nil, p.bearer()...).want(t, http.StatusOK)
		for _, asks := range []struct {
			method, path string
			status, left int
		}{{"POST", "/auth/login", bad, 2}, {"GET", "/sessions", http.StatusOK, 2}, {"GET", "/v0.1/servers", http.StatusOK, 2}} {
			for range asks.left {
				call(t, asks.method, s.api+asks.path, nil, p.bearer()...).want(t, asks.status)
			}
			a := call(t, asks.method, s.api+asks.path, nil, p.bearer()...).want(t, http.StatusTooManyRequests)
			if a.header.Get("Retry-After") == "" || a.header.Get("X-RateLimit-Remaining") != "0" {
				t.Errorf("%s: %v", asks.path, a.header)
			}
		}
	}
}

// wantReadiness wants an answer of /ready that names the counter store as what is down.
func (a answer) wantReadiness(t *testing.T, status int, state string) {
	t.Helper()
	var got struct {
		Status       string
		Dependencies map[string]string
	}
	a.want(t, status).decode(t, &got)
	if got.Status != state || got.Dependencies["counters"] != "down" || got.Dependencies["database"] != "ok" ||
		strings.Count(string(a.body), `"down"`) != 1 {
		t.Errorf("/ready: %s", a.body)
	}
}
