package administration

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

const everyName = "com.example/*"

// site is a registry with review on two instances. olga operates, and may review; ada publishes; eve
// has no grant.
type site struct {
	e          *fixture.Environment
	one, other *fixture.Service

	olga, ada, eve *fixture.Person
}

func openSite(t *testing.T, e *fixture.Environment) *site {
	t.Helper()
	e.Environ = append(append(e.Environ, fixture.RegistrySettings()...), "REGISTRY_REVIEW=on", "OAUTH=on", "PUBLIC_URL=https://tools.example.com")
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
