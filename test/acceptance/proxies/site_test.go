package proxies

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

const (
	admin     = "/admin/v1"
	publicURL = "https://tollgate.example.com"
	weather   = "com.example/weather"
	// weatherURL is the remote URL of the server weather.
	weatherURL = "https://tools.example.com/weather/mcp"
)

type object = map[string]any

// site is two instances with an operator, a service account robot that calls tools, and the key of a
// proxy.
type site struct {
	*fixture.Service
	environment *fixture.Environment
	other       *fixture.Service
	operator    *fixture.Person
	robot, key  string
}

func settings() []string {
	return append(fixture.RegistrySettings(), "DECIDE=on", "PUBLIC_URL="+publicURL)
}

func startSite(t *testing.T, e *fixture.Environment) *site {
	t.Helper()
	s := &site{environment: e, Service: e.Start(t, settings()...), other: e.Start(t, settings()...)}
	s.operator = e.NewWriter(t, s.Service, "olga@example.com", "operate *", "publish *", "edit *", "review *")
	s.robot = s.newService(t, "robot", "registry:read")
	s.publish(t, weather, weatherURL)
	e.RunCommand(t, "", "service-account", "set", "proxy", "--description", "a proxy")
	e.RunCommand(t, "", "grant", "add", "--service", "proxy", "--action", "operate", "--resource", "*")
	s.key = s.newToken(t, "proxy", "decide")
	return s
}

// newService makes a service account with a token.
func (s *site) newService(t *testing.T, name, scope string) string {
	t.Helper()
	s.environment.RunCommand(t, "", "service-account", "set", name, "--description", "calls tools")
	return s.newToken(t, name, scope)
}

func (s *site) newToken(t *testing.T, service, scope string) string {
	t.Helper()
	var made struct{ Token string }
	s.manage(t, "POST", "/service-accounts/"+service+"/tokens", object{"name": "t", "scopes": []string{scope}}, http.StatusCreated).
		Decode(t, &made)
	return made.Token
}

// manage calls the API of administration as the operator.
func (s *site) manage(t *testing.T, method, path string, body any, status int) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, method, s.API+admin+path, body, s.operator.Bearer()...).WantStatus(t, status)
}

// setRule stores an access rule of the order 10 unless the fields have another one.
func (s *site) setRule(t *testing.T, name string, fields object) {
	t.Helper()
	rule := object{"order": 10, "effect": "allow", "subjects": []string{"service:robot"}, "servers": []string{weather}}
	for k, v := range fields {
		rule[k] = v
	}
	a := apiclient.Call(t, "PUT", s.API+admin+"/access-rules/"+name, rule, s.operator.Bearer()...)
	if a.Status != http.StatusOK && a.Status != http.StatusCreated {
		t.Fatalf("the rule %s: %d %s", name, a.Status, a.Body)
	}
}

// publish publishes a server with a remote URL.
func (s *site) publish(t *testing.T, name, remote string) {
	t.Helper()
	document := fixture.NewServerDocument(name, "1.0.0")
	document["remotes"] = []object{{"type": "streamable-http", "url": remote}}
	apiclient.Call(t, "POST", s.API+"/v0.1/publish", document, s.operator.Bearer()...).WantStatus(t, http.StatusOK)
}

// forwarded are the headers of a proxy about a request.
func (s *site) forwarded(token, method, url string, more ...string) []string {
	scheme, rest, _ := strings.Cut(url, "://")
	host, path, _ := strings.Cut(rest, "/")
	header := append([]string{
		"x-tollgate-key", s.key, "X-Forwarded-Method", method, "X-Forwarded-Proto", scheme, "X-Forwarded-Host", host,
		"X-Forwarded-Uri", "/" + path,
	}, more...)
	if token != "" {
		header = append(header, "Authorization", "Bearer "+token)
	}
	return header
}

// callOf is the body of a call of a tool.
func callOf(tool string) object {
	return object{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": object{"name": tool, "arguments": object{"secret": "argument"}}}
}

// ask returns the answer of an instance whether somebody may call a tool of the server weather.
func (s *site) ask(t *testing.T, of *fixture.Service, token, tool string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, "POST", of.API+"/decide/http", callOf(tool), s.forwarded(token, "POST", weatherURL)...)
}

// awaitAnswer waits until both instances answer with a status, after a change that they must know within
// a second.
func (s *site) awaitAnswer(t *testing.T, what, token, tool string, status int) {
	t.Helper()
	known := map[*fixture.Service]bool{}
	fixture.AwaitFresh(t, what, func() bool {
		for _, of := range []*fixture.Service{s.Service, s.other} {
			known[of] = known[of] || s.ask(t, of, token, tool).Status == status
		}
		return known[s.Service] && known[s.other]
	})
}
