package acceptance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestBodiesOfEveryOperation sends each operation that says that it refuses
// them a body that is too large, and one that is no JSON by its content type.
func TestBodiesOfEveryOperation(t *testing.T) {
	d, err := readDescription()
	if err != nil {
		t.Fatal(err)
	}
	e := newEnvironment(t, "embedded")
	s := e.start(t)
	ada := e.newPerson(t, "ada@example.com", "publish *", "edit *")
	ada.login(t, s)
	ada.stepUp(t, e, s)
	large := strings.Repeat(" ", 1<<20+1)
	sent := 0
	for _, path := range d.document.Paths.InMatchingOrder() {
		item := d.document.Paths.Value(path)
		for method, o := range item.Operations() {
			address := s.api + withExamples(path, item)
			if o.Responses.Status(http.StatusRequestEntityTooLarge) != nil {
				call(t, method, address, large, ada.bearer()...).want(t, http.StatusRequestEntityTooLarge)
				sent++
			}
			if o.Responses.Status(http.StatusUnsupportedMediaType) != nil {
				call(t, method, address, "{}", append(ada.bearer(), "Content-Type", "text/plain")...).
					want(t, http.StatusUnsupportedMediaType)
				sent++
			}
		}
	}
	if sent < 40 {
		t.Errorf("sent %d bodies", sent)
	}
}

// withExamples returns a path with the examples of its parameters.
func withExamples(path string, item *openapi3.PathItem) string {
	for _, p := range item.Parameters {
		path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", fmt.Sprint(p.Value.Example))
	}
	return path
}

// TestRefusalsOfOperations asks for what no other test does.
func TestRefusalsOfOperations(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		ada := e.newPerson(t, "ada@example.com", "publish *", "edit *")
		ada.login(t, s)
		ada.stepUp(t, e, s)
		call(t, "POST", s.api+"/v0.1/publish", document("com.example/weather", "1.0.0"), ada.bearer()...).want(t, http.StatusOK)

		for _, suffix := range []string{"/versions", "/versions/1.0.0"} {
			address := serverURL(s, "com.example/weather", suffix)
			tag := call(t, "GET", address, nil).want(t, http.StatusOK).header.Get("ETag")
			call(t, "GET", address, nil, "If-None-Match", tag).want(t, http.StatusNotModified)
		}
		call(t, "DELETE", s.api+"/v0.1/servers/com.example%2Fweather/versions/%FF", nil, ada.bearer()...).want(t, http.StatusBadRequest)
		wantCode(t, call(t, "POST", s.api+"/auth/mfa/disable", "{}", ada.bearer()...).want(t, http.StatusBadRequest), "invalid_input")
		call(t, "GET", s.api+"/v2", nil).want(t, http.StatusNotFound)
		call(t, "GET", s.api+"/v2/api/methods.json?callback=1", nil).want(t, http.StatusBadRequest)
		call(t, "GET", s.api+"/v2/api/methods.xml?callback=show", nil).want(t, http.StatusBadRequest)
	})
}
