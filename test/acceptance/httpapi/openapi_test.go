package httpapi

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestDescription reads the description of the API in its three formats.
func TestDescription(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, "API_RATE_LIMIT=1", "AUTH_RATE_LIMIT=1", "REGISTRY_RATE_LIMIT=1")
		for range 3 {
			for path, media := range map[string]string{
				"/openapi.yaml": "application/yaml", "/openapi.json": "application/json",
				"/docs": "text/html; charset=utf-8", "/docs/registry": "text/html; charset=utf-8",
			} {
				a := apiclient.Call(t, "GET", s.API+path, nil).WantStatus(t, http.StatusOK)
				if got := a.Header.Get("Content-Type"); got != media {
					t.Errorf("%s is %s, want %s", path, got, media)
				}
				apiclient.Call(t, "GET", s.API+path, nil, "If-None-Match", a.Header.Get("ETag")).WantStatus(t,
					http.StatusNotModified)
				apiclient.Call(t, "HEAD", s.API+path, nil).WantStatus(t, http.StatusOK)
			}
		}
		if a := apiclient.Call(t, "GET", s.API+"/openapi.yaml", nil); !bytes.Equal(a.Body, apidocs.Document()) {
			t.Error("/openapi.yaml is not the document that answers are checked against")
		}
		apiclient.Call(t, "POST", s.API+"/docs", "{}").WantStatus(t, http.StatusMethodNotAllowed)
		apiclient.Call(t, "GET", s.API+"/docs/none", nil).WantStatus(t, http.StatusNotFound)
	})
}
