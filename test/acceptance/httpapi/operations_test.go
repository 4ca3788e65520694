package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestBodiesOfEveryOperation sends a body that is too large, and a body with another content type,
// to each operation that describes such a refusal.
func TestBodiesOfEveryOperation(t *testing.T) {
	d, err := openapi.ReadDescription()
	must.Succeed(t, err)
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, "OAUTH=on", "PUBLIC_URL=https://tools.example.com")
	ada := e.NewPerson(t, "ada@example.com", "publish *", "edit *")
	ada.Login(t, s)
	ada.StepUp(t, e, s)
	large := strings.Repeat(" ", 1<<20+64<<10+1) // a tool list may be larger than other bodies
	sent := 0
	for _, path := range d.Document.Paths.InMatchingOrder() {
		item := d.Document.Paths.Value(path)
		for method, o := range item.Operations() {
			address := s.API + fillPath(path, item)
			if o.Responses.Status(http.StatusRequestEntityTooLarge) != nil {
				apiclient.Call(t, method, address, large, ada.Bearer()...).WantStatus(t,
					http.StatusRequestEntityTooLarge)
				sent++
			}
			if o.Responses.Status(http.StatusUnsupportedMediaType) != nil {
				apiclient.Call(t, method, address, "{}", append(ada.Bearer(), "Content-Type", "text/plain")...).
					WantStatus(t, http.StatusUnsupportedMediaType)
				sent++
			}
		}
	}
	if sent < 40 {
		t.Errorf("sent %d bodies", sent)
	}
}

// fillPath returns a path with the examples of its parameters.
func fillPath(path string, item *openapi3.PathItem) string {
	for _, p := range item.Parameters {
		path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", fmt.Sprint(p.Value.Example))
	}
	return path
}

// TestRefusalsOfOperations gets the responses that no other test gets.
func TestRefusalsOfOperations(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		ada := e.NewPerson(t, "ada@example.com", "publish *", "edit *")
		ada.Login(t, s)
		ada.StepUp(t, e, s)
		apiclient.Call(t, "POST", s.API+"/v0.1/publish", fixture.NewServerDocument("com.example/weather", "1.0.0"),
			ada.Bearer()...).WantStatus(t, http.StatusOK)

		for _, address := range []string{
			s.API + "/v0.1/servers",
			fixture.ServerURL(s, "com.example/weather", "/versions"),
			fixture.ServerURL(s, "com.example/weather", "/versions/1.0.0"),
		} {
			tag := apiclient.Call(t, "GET", address, nil).WantStatus(t, http.StatusOK).Header.Get("ETag")
			apiclient.Call(t, "GET", address, nil, "If-None-Match", tag).WantStatus(t, http.StatusNotModified)
		}
		apiclient.Call(t, "DELETE", s.API+"/v0.1/servers/com.example%2Fweather/versions/%FF", nil, ada.Bearer()...).
			WantStatus(t, http.StatusBadRequest)
		apiclient.WantAuthError(t,
			apiclient.Call(t, "POST", s.API+"/auth/mfa/disable", "{}", ada.Bearer()...).WantStatus(t,
				http.StatusBadRequest), "invalid_input")
		apiclient.Call(t, "GET", s.API+"/v2", nil).WantStatus(t, http.StatusNotFound)
		apiclient.Call(t, "GET", s.API+"/v2/api/methods.json?callback=1", nil).WantStatus(t, http.StatusBadRequest)
		apiclient.Call(t, "GET", s.API+"/v2/api/methods.xml?callback=show", nil).WantStatus(t, http.StatusBadRequest)
	})
}
