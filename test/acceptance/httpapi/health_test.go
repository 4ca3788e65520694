package httpapi

import (
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestHealth checks the pages for the tools of an operator.
func TestHealth(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		apiclient.Call(t, "GET", s.API+"/health", nil).WantStatus(t, http.StatusOK)
		var ready struct{ Dependencies map[string]string }
		apiclient.Call(t, "GET", s.API+"/ready", nil).WantStatus(t, http.StatusOK).Decode(t, &ready)
		if len(ready.Dependencies) == 0 {
			t.Error("readiness names no dependency")
		}
		apiclient.Call(t, "GET", s.RateLimitAPI+"/healthcheck", nil).WantStatus(t, http.StatusOK)
		for _, path := range []string{"/", "/debug/pprof/", "/rlconfig", "/stats", "/metrics"} {
			apiclient.Call(t, "GET", s.Debug+path, nil).WantStatus(t, http.StatusOK)
		}
	})
}
