package proxies

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/proxyserver"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// startToolServer starts a server that answers every call with the headers that it got.
func startToolServer(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(r.Header); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// proxy is a running proxy that has the configuration of an example.
type proxy struct{ url string }

// readExample returns an example with the addresses of a test.
func (s *site) readExample(t *testing.T, file, address, upstream string) string {
	t.Helper()
	return proxyserver.Example(t, file, proxyserver.Place{Listen: address, Service: s.API, Upstream: upstream, Key: s.key})
}

// startProxy runs nginx or Caddy with its example until the test ends.
func (s *site) startProxy(t *testing.T, program, upstream string) proxy {
	t.Helper()
	address := net.JoinHostPort("127.0.0.1", instance.FreePort())
	proxyserver.Start(t, program, address, s.readExample(t, proxyserver.File(program), address, upstream))
	return proxy{"http://" + address}
}

// answer is what a client gets through a proxy.
type answer struct {
	status int
	header http.Header
	got    http.Header // what the tool server got
}

// call calls the tool server through the proxy.
func (p proxy) call(t *testing.T, token string, header ...string) answer {
	t.Helper()
	body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forecast"}}`)
	r, err := http.NewRequestWithContext(t.Context(), "POST", p.url+"/weather/mcp", body)
	must.Succeed(t, err)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	must.Succeed(t, err)
	defer response.Body.Close()
	a := answer{status: response.StatusCode, header: response.Header}
	text, err := io.ReadAll(response.Body)
	if err == nil && a.status == http.StatusOK {
		err = json.Unmarshal(text, &a.got)
	}
	must.Succeed(t, err)
	return a
}

// rounds and callsOfRound are how often a rule changes, and how many calls follow each change.
const (
	rounds       = 6
	callsOfRound = 50
)

// TestProxies runs nginx and Caddy with their examples: what the tool server gets, what a client cannot
// forge, and 300 calls while rules change, of which no one gets a wrong answer.
func TestProxies(t *testing.T) {
	for _, program := range []string{"nginx", "caddy"} {
		t.Run(program, func(t *testing.T) {
			s := startSite(t, fixture.NewEnvironment(t, "embedded"))
			s.publish(t, "com.example/open", "https://tools.example.com/open")
			s.setRule(t, "open", object{"servers": []string{"com.example/open"}, "subjects": []string{"anyone"}})
			p := s.startProxy(t, program, startToolServer(t).URL)
			p.checkForged(t, s)
			p.callWhileRulesChange(t, s)
		})
	}
}

// checkForged checks the answers, also for a client that forges the headers of a proxy.
func (p proxy) checkForged(t *testing.T, s *site) {
	t.Helper()
	if a := p.call(t, ""); a.status != http.StatusUnauthorized || !strings.Contains(a.header.Get("WWW-Authenticate"), "resource_metadata=") {
		t.Errorf("without a token: %+v", a)
	}
	denied := p.call(t, s.robot)
	if denied.status != http.StatusForbidden || denied.header.Get("x-tollgate-decision-id") == "" {
		t.Errorf("without a rule: %+v", denied)
	}
	forged := []string{
		"x-tollgate-server", "com.example/open", "x-tollgate-subject", "person:olga@example.com", "x-tollgate-tool", "forged", "x-tollgate-key", "x",
		"x_tollgate_subject", "person:olga@example.com", "X_Tollgate_Trust", "FULL_TRUST",
	}
	if a := p.call(t, s.robot, forged...); a.status != http.StatusForbidden {
		t.Errorf("with the name of another server: %+v", a)
	}
	for _, header := range [][]string{
		{"X-Forwarded-Method", "OPTIONS"}, {"X-Original-Method", "OPTIONS"}, {"X-Forwarded-Uri", "/open"}, {"X-Original-URL", "https://tools.example.com/open"},
	} {
		if a := p.call(t, s.robot, header...); a.status < http.StatusBadRequest {
			t.Errorf("with %s: %+v", header, a)
		}
	}
	bob := s.environment.NewPerson(t, "bob@example.com")
	bob.Login(t, s.Service)
	s.setRule(t, "bob", object{"subjects": []string{"person:bob@example.com"}, "minTrust": "FULL_TRUST"})
	await.Until(t, "more trust is required", func() bool {
		a := p.call(t, bob.AccessToken)
		return a.status == http.StatusForbidden && strings.Contains(a.header.Get("WWW-Authenticate"), "insufficient_user_authentication")
	})
	s.setRule(t, "robots", object{})
	await.Until(t, "the rule", func() bool { return p.call(t, s.robot).status == http.StatusOK })
	a := p.call(t, s.robot, forged...)
	if got := a.got.Get("Authorization"); got != "" {
		t.Errorf("the tool server got the token: %s", got)
	}
	for name, want := range map[string]string{
		"subject": "service:robot", "server": weather, "tool": "", "trust": "FULL_TRUST", "rule": "robots", "key": "",
	} {
		if got := a.got.Get("x-tollgate-" + name); got != want && !(name == "key" && got == "x") {
			t.Errorf("the tool server got x-tollgate-%s: %q, want %q", name, got, want)
		}
	}
	for name := range a.got {
		if strings.Contains(strings.ToLower(name), "x_tollgate") {
			t.Errorf("the tool server got %s", name)
		}
	}
}

// callWhileRulesChange changes the rule that decides, and others all the time.
func (p proxy) callWhileRulesChange(t *testing.T, s *site) {
	t.Helper()
	for round := range rounds {
		effect, want := "allow", http.StatusOK
		if round%2 == 0 {
			effect, want = "deny", http.StatusForbidden
		}
		s.setRule(t, "robots", object{"effect": effect})
		await.Until(t, "the rule that "+effect+"s", func() bool { return p.call(t, s.robot).status == want })
		var calls atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for calls.Add(1) <= callsOfRound {
					if a := p.call(t, s.robot); a.status != want {
						t.Errorf("round %d: the status is %d, want %d", round, a.status, want)
					}
				}
			})
		}
		for i := 0; calls.Load() < callsOfRound; i++ {
			s.setRule(t, "other-"+strconv.Itoa(i%5), object{"order": i % 20, "subjects": []string{"service:other"}, "effect": []string{"deny", "allow"}[i%2]})
		}
		all.Wait()
	}
}

// TestTraefik reads the example of Traefik, and sends the headers that Traefik would send by it.
func TestTraefik(t *testing.T) {
	s := startSite(t, fixture.NewEnvironment(t, "embedded"))
	var config struct {
		HTTP struct {
			Routers     map[string]struct{ Middlewares []string }
			Middlewares map[string]struct {
				Headers struct {
					CustomRequestHeaders map[string]string `yaml:"customRequestHeaders"`
				}
				ForwardAuth struct {
					Address             string
					ForwardBody         bool     `yaml:"forwardBody"`
					MaxBodySize         int      `yaml:"maxBodySize"`
					AuthResponseHeaders []string `yaml:"authResponseHeaders"`
				} `yaml:"forwardAuth"`
			}
		}
	}
	must.Succeed(t, yaml.Unmarshal([]byte(s.readExample(t, "traefik.yaml", "", "")), &config))
	s.setRule(t, "forecasts", object{"tools": []string{"forecast"}})
	s.awaitAnswer(t, "the rule", s.robot, "forecast", http.StatusOK)
	request := http.Header{"Authorization": {"Bearer " + s.robot}, "X-Tollgate-Server": {"com.example/forged"}, "X-Original-Url": {"https://a/b"}}
	for _, name := range config.HTTP.Routers["weather"].Middlewares {
		m := config.HTTP.Middlewares[name]
		for name, value := range m.Headers.CustomRequestHeaders {
			if request.Del(name); value != "" {
				request.Set(name, value)
			}
		}
		f := m.ForwardAuth
		if f.Address == "" {
			continue
		}
		header := []string{
			"X-Forwarded-Method", "POST", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "tools.example.com", "X-Forwarded-Uri", "/weather/mcp",
		}
		for name := range request {
			header = append(header, name, request.Get(name))
		}
		for tool, status := range map[string]int{"forecast": http.StatusOK, "delete": http.StatusForbidden} {
			a := apiclient.Call(t, "POST", f.Address, callOf(tool), header...).WantStatus(t, status)
			for _, name := range f.AuthResponseHeaders {
				if status == http.StatusOK && a.Header.Get(name) == "" {
					t.Errorf("%s is missing", name)
				}
			}
		}
		if !f.ForwardBody || f.MaxBodySize != 65536 || len(f.AuthResponseHeaders) != 5 {
			t.Errorf("forwardAuth is %+v", f)
		}
	}
	if request.Get("x-tollgate-key") != "" || request.Get("Authorization") != "" || request.Get("x-tollgate-server") != weather {
		t.Errorf("the tool server gets %v", request)
	}
}
