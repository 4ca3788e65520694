package httpapi

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestOwnLimits checks the API's own limits and their headers, on successful responses and errors.
func TestOwnLimits(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, "AUTH_RATE_LIMIT=3", "REGISTRY_RATE_LIMIT=5")
		login := func() apiclient.Response { return apiclient.Call(t, "POST", s.API+"/auth/login", "{}") }
		for i := range 3 {
			a := login().WantStatus(t, http.StatusBadRequest)
			apiclient.WantOwnLimit(t, a, "3", strconv.Itoa(2-i))
		}
		a := login().WantStatus(t, http.StatusTooManyRequests)
		apiclient.WantOwnLimit(t, a, "3", "0")
		details := apiclient.WantAuthError(t, a, "rate_limit_exceeded")
		if retry := a.Header.Get("Retry-After"); retry == "" || details["retryAfter"] == nil {
			t.Errorf("Retry-After is %q, retryAfter %v", retry, details["retryAfter"])
		}
		for i := range 5 {
			apiclient.WantOwnLimit(t, apiclient.Call(t, "GET", s.API+"/v0.1/servers", nil).WantStatus(t, http.StatusOK),
				"5", strconv.Itoa(4-i))
		}
		apiclient.WantRegistryError(t,
			apiclient.Call(t, "GET", s.API+"/v0.1/servers", nil).WantStatus(t, http.StatusTooManyRequests))
		apiclient.Call(t, "GET", s.API+"/health", nil).WantStatus(t, http.StatusOK)
	})
}
