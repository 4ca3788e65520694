package administration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

const (
	unknownID = "00000000-0000-4000-8000-000000000000"
	everyName = "com.example/*"
)

// site is a registry with review on two instances. olga operates, and may review; ada publishes; eve
// has no grant.
type site struct {
	e          *fixture.Environment
	one, other *fixture.Service

	olga, ada, eve *fixture.Person
	secrets        []string // that were in an answer once
}

func openSite(t *testing.T, e *fixture.Environment, environ ...string) *site {
	t.Helper()
	e.Environ = append(append(e.Environ, fixture.RegistrySettings()...), "REGISTRY_REVIEW=on")
	e.Environ = append(e.Environ, environ...)
	s := &site{e: e, one: e.Start(t), other: e.Start(t)}
	s.olga = e.NewWriter(t, s.one, "olga@example.com", "operate *", "review "+everyName, "publish "+everyName)
	s.ada = e.NewWriter(t, s.one, "ada@example.com", "publish "+everyName)
	s.eve = e.NewWriter(t, s.one, "eve@example.com")
	return s
}

// call sends a request of the operator below /admin/v1 to the first instance.
func (s *site) call(t *testing.T, method, path string, body any, header ...string) apiclient.Response {
	t.Helper()
	return s.callAs(t, s.olga, method, path, body, header...)
}

func (s *site) callAs(
	t *testing.T, who *fixture.Person, method, path string, body any, header ...string,
) apiclient.Response {
	t.Helper()
	a := apiclient.Call(t, method, s.one.API+"/admin/v1"+path, body, append(who.Bearer(), header...)...)
	if a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s %s may be cached: %v", method, path, a.Header)
	}
	return a
}

// want is call with the status of the answer.
func (s *site) want(t *testing.T, status int, method, path string, body any, header ...string) apiclient.Response {
	t.Helper()
	a := s.call(t, method, path, body, header...)
	if a.Status != status {
		t.Errorf("%s %s: %d %s, want %d", method, path, a.Status, a.Body, status)
	}
	return a
}

// wantError is want for an error with a code; with a field, the details name it.
func (s *site) wantError(t *testing.T, status int, code, field, method, path string, body any, header ...string) {
	t.Helper()
	wantErrorOf(t, s.want(t, status, method, path, body, header...), code, field)
}

func wantErrorOf(t *testing.T, a apiclient.Response, code, field string) {
	t.Helper()
	var got struct {
		Error   string
		Details struct{ Fields map[string]string }
	}
	a.Decode(t, &got)
	if got.Error != code || field != "" && got.Details.Fields[field] == "" {
		t.Errorf("the error is %s, want %s of %q", a.Body, code, field)
	}
}

type object map[string]any

func (o object) text(name string) string {
	text, _ := o[name].(string)
	return text
}

func decode(t *testing.T, a apiclient.Response) (o object) {
	t.Helper()
	a.Decode(t, &o)
	return o
}

// items returns the objects of a list.
func items(t *testing.T, a apiclient.Response, name string) (all []object) {
	t.Helper()
	var list map[string]any
	a.WantStatus(t, http.StatusOK).Decode(t, &list)
	found, ok := list[name].([]any)
	if !ok || list["metadata"] == nil {
		t.Fatalf("%s has no list %s with metadata", a.Body, name)
	}
	for _, one := range found {
		all = append(all, one.(map[string]any))
	}
	return all
}

// keep notes a secret, which no other answer, log or event may have.
func (s *site) keep(t *testing.T, secret string) {
	t.Helper()
	if len(secret) < 20 {
		t.Errorf("%q is no secret", secret)
	}
	s.secrets = append(s.secrets, secret)
}

// wantNoSecret checks that a text has no secret of the site.
func (s *site) wantNoSecret(t *testing.T, where, text string) {
	t.Helper()
	for _, secret := range s.secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%s has a secret", where)
		}
	}
}
