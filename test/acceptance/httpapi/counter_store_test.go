package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestOwnLimitsWithoutTheCounterStore stops the counter store. With failure modes that allow it,
// people can sign in and work within the limits of the API; with the other modes, /auth returns
// 503.
func TestOwnLimitsWithoutTheCounterStore(t *testing.T) {
	e := fixture.NewProduction(t)
	p := e.NewPerson(t, "ada@example.com")
	for _, mode := range []string{"error", "closed", "open", "local"} {
		s := e.Start(t, "KVSTORE_URL=127.0.0.1:1", "KVSTORE_FAILURE_MODE="+mode, "AUTH_RATE_LIMIT=6",
			"API_RATE_LIMIT=3",
			"REGISTRY_RATE_LIMIT=2", "STEP_UP_LIMIT=2")
		ready := apiclient.Call(t, "GET", s.API+"/ready", nil)
		if mode == "error" || mode == "closed" {
			wantReadiness(t, ready, http.StatusServiceUnavailable, "unavailable")
			apiclient.Call(t, "POST", s.API+"/auth/login", "{}").WantStatus(t, http.StatusServiceUnavailable)
			apiclient.Call(t, "GET", s.API+"/v0.1/servers", nil).WantStatus(t, http.StatusOK)
			continue
		}
		wantReadiness(t, ready, http.StatusOK, "degraded")
		p.Login(t, s)
		for left := 1; left >= 0; left-- {
			apiclient.WantOwnLimit(t,
				p.PostJSON(t, s, "/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}).WantStatus(t,
					http.StatusOK), "6", strconv.Itoa(left+3))
		}
		p.PostJSON(t, s, "/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}).WantStatus(t,
			http.StatusTooManyRequests)
		apiclient.Call(t, "GET", s.API+"/auth/session", nil, p.Bearer()...).WantStatus(t, http.StatusOK)
		for _, asks := range []struct {
			method, path string
			status, left int
		}{
			{"POST", "/auth/login", http.StatusBadRequest, 2}, {"GET", "/sessions", http.StatusOK, 2}, {
				"GET", "/v0.1/servers", http.StatusOK, 2,
			},
		} {
			for range asks.left {
				apiclient.Call(t, asks.method, s.API+asks.path, nil, p.Bearer()...).WantStatus(t, asks.status)
			}
			a := apiclient.Call(t, asks.method, s.API+asks.path, nil, p.Bearer()...).WantStatus(t,
				http.StatusTooManyRequests)
			if a.Header.Get("Retry-After") == "" || a.Header.Get("X-RateLimit-Remaining") != "0" {
				t.Errorf("%s: %v", asks.path, a.Header)
			}
		}
	}
}

// wantReadiness checks that the response of /ready reports only the counter store as down.
func wantReadiness(t *testing.T, a apiclient.Response, status int, state string) {
	t.Helper()
	var got struct {
		Status       string
		Dependencies map[string]string
	}
	a.WantStatus(t, status).Decode(t, &got)
	if got.Status != state || got.Dependencies["counters"] != "down" || got.Dependencies["database"] != "ok" ||
		strings.Count(string(a.Body), `"down"`) != 1 {
		t.Errorf("/ready: %s", a.Body)
	}
}
