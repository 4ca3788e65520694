package proxies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/program"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// readScope is the one scope of the authorization server that is not its own.
const readScope = "mcp-registry:read"

var authorizationServers atomic.Int64

// startAuthorizationServer makes an issuer at which clients register and a person of the group devs signs in, and
// returns it.
func startAuthorizationServer(t *testing.T) string {
	t.Helper()
	address := os.Getenv("TEST_OIDC_PROVIDER")
	if address == "" || os.Getenv("TEST_MCP") == "" {
		t.Skip("needs oidc-provider and the SDK: run the test by test/servers/with.sh, or set TEST_OIDC_PROVIDER and TEST_MCP")
	}
	issuer := fmt.Sprintf("%s/agents%d-%d", address, os.Getpid(), authorizationServers.Add(1))
	send(t, "PUT", issuer, object{
		"agents": true, "pages": false, "who": "u1",
		"clients": []object{{
			"client_id": "tollgate", "client_secret": "secret", "grant_types": []string{"authorization_code"}, "redirect_uris": []string{publicURL},
		}},
		"people": object{"u1": object{"claims": object{"email": "ada@acme.example", "groups": []string{"devs"}}}},
	}, nil)
	var discovered struct {
		Registration string `json:"registration_endpoint"`
	}
	send(t, "GET", issuer+"/.well-known/openid-configuration", nil, &discovered)
	if discovered.Registration == "" {
		t.Skip("clients cannot register at oidc-provider: start test/servers/oidc anew")
	}
	return issuer
}

// send sends a request to what is not Tollgate, and reads the answer into a value unless that is nil.
func send(t *testing.T, method, address string, body, into any) {
	t.Helper()
	text, err := json.Marshal(body)
	must.Succeed(t, err)
	r, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(text))
	must.Succeed(t, err)
	response, err := http.DefaultClient.Do(r)
	must.Succeed(t, err)
	defer func() { _ = response.Body.Close() }() // it was only read
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: status %d", method, address, response.StatusCode)
	}
	if into != nil {
		must.Succeed(t, json.NewDecoder(response.Body).Decode(into))
	}
}

// startWeather starts an MCP server with one tool, which says who has called it.
func startWeather(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			ID     json.RawMessage
			Method string
		}
		body, err := io.ReadAll(r.Body)
		if err == nil && len(body) > 0 {
			err = json.Unmarshal(body, &call)
		}
		var result any
		switch {
		case err != nil || r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case call.ID == nil: // a notification
			w.WriteHeader(http.StatusAccepted)
			return
		case call.Method == "initialize":
			result = object{
				"protocolVersion": "2025-06-18", "capabilities": object{"tools": object{}}, "serverInfo": object{"name": "weather", "version": "1"},
			}
		case call.Method == "tools/list":
			result = object{"tools": []object{{"name": "forecast", "inputSchema": object{"type": "object"}}}}
		case call.Method == "tools/call":
			result = object{"content": []object{{"type": "text", "text": r.Header.Get("x-tollgate-subject")}}}
		default:
			result = object{}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object{"jsonrpc": "2.0", "id": call.ID, "result": result}) // the client has gone
	}))
	t.Cleanup(s.Close)
	return s
}

// checkOwnMetadata checks that a proxy has the metadata of its MCP server itself, since Codex looks there only, and that
// nobody gets metadata of another host from it.
func checkOwnMetadata(t *testing.T, address string) {
	t.Helper()
	host, path, _ := strings.Cut(address, "/weather/")
	const place = "/.well-known/oauth-protected-resource/weather/"
	var m struct{ Resource string }
	if send(t, "GET", host+place+path, nil, &m); m.Resource != address {
		t.Errorf("the metadata of %s is that of %s", address, m.Resource)
	}
	for _, forged := range []string{
		"mcp%26resource=https:%2F%2Fevil.example", "mcp?resource=https%3A%2F%2Fevil.example", "mcp%0d%0aX-Evil:%20y", "mcp%20HTTP%2F1.1", "mcp%23x",
		"mcp%3Fresource=https:%2F%2Fevil.example", "..%2F..%2Fservers?resource=https%3A%2F%2Fevil.example", "..%2f..%2f..%2fv0.1%2fservers", "a%0db",
	} {
		response, err := http.Get(host + place + forged)
		must.Succeed(t, err)
		text, err := io.ReadAll(response.Body)
		must.Succeed(t, err)
		_ = response.Body.Close() // it was only read
		if response.StatusCode == http.StatusOK && len(text) > 0 && !strings.HasPrefix(string(text), `{"resource":"`+host+`/weather/`) {
			t.Errorf("%s has %s", forged, text)
		}
	}
}

// report is what client.mjs prints.
type report struct {
	Asked struct{ Scope, Resource string }
	Got   struct {
		Scope    string
		Metadata struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
		}
	}
	Result []string
}

// signIn runs the SDK at an address, and returns what it has seen.
func signIn(t *testing.T, address, tool string) (r report) {
	t.Helper()
	var log bytes.Buffer
	c := exec.CommandContext(t.Context(), "node", "testdata/client.mjs", os.Getenv("TEST_MCP"), address, tool)
	c.Stderr = &log
	text, err := c.Output()
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Errorf("%s: %v: %s%s", address, err, text, log.String())
	}
	return r
}

// agentSite is a site whose registry is private, with an authorization server that is a provider, and with nginx and Caddy
// before an MCP server.
type agentSite struct {
	*site
	issuer  string
	proxies map[string]string // the address of the MCP server by the program
}

// startAgentSite starts it. The clients must find the service at PUBLIC_URL.
func startAgentSite(t *testing.T) *agentSite {
	t.Helper()
	issuer, e, port := startAuthorizationServer(t), fixture.NewEnvironment(t, "embedded"), instance.FreePort()
	address := net.JoinHostPort("127.0.0.1", port)
	s := &agentSite{site: &site{environment: e}, issuer: issuer, proxies: map[string]string{}}
	s.Service = e.Start(t, append(fixture.RegistrySettings(), "DECIDE=on", "MCP=on", "REGISTRY_READ=people", "PORT="+port,
		"PUBLIC_URL=http://"+address, "OAUTH_AUTHORIZATION_SERVERS="+issuer)...)
	s.operator = e.NewWriter(t, s.Service, "olga@example.com", "operate *", "publish *")
	s.publish(t, weather, weatherURL)
	e.RunCommand(t, "", "service-account", "set", "proxy", "--description", "a proxy")
	e.RunCommand(t, "", "grant", "add", "--service", "proxy", "--action", "operate", "--resource", "*")
	s.key = s.newToken(t, "proxy", "decide")
	s.setRule(t, "devs", object{"subjects": []string{"group:acme/devs"}})
	audiences := []string{s.API + "/mcp"}
	for _, program := range []string{"nginx", "caddy"} {
		if _, err := exec.LookPath(program); err == nil {
			s.proxies[program] = s.startProxy(t, program, startWeather(t).URL).url + "/weather/mcp"
			audiences = append(audiences, s.proxies[program])
		}
	}
	s.manage(t, "PUT", "/providers/acme", object{
		"displayName": "Acme", "issuer": issuer, "clientId": "tollgate", "networks": []string{"127.0.0.0/8"}, "audiences": audiences,
	}, http.StatusCreated)
	var made struct{ Token string }
	send(t, "POST", issuer+"/access", object{"audience": audiences[0], "scope": readScope, "subject": "u1"}, &made)
	await.Until(t, "the provider and the rule", func() bool { return s.ask(t, s.Service, made.Token, "forecast").Status == http.StatusOK })
	return s
}

// TestClientsSignIn runs the TypeScript SDK, of which most clients are made, at tool servers that nginx and Caddy protect
// with the examples, and at the private registry: it is refused, reads where to sign in, registers, signs a person in,
// and calls a tool with the token, of which the tool server learns whose it is.
func TestClientsSignIn(t *testing.T) {
	s := startAgentSite(t)
	for _, address := range s.proxies {
		checkOwnMetadata(t, address)
	}
	places := map[string]string{s.API + "/mcp": "search_servers"}
	for _, address := range s.proxies {
		places[address] = "forecast"
	}
	for address, tool := range places {
		r := signIn(t, address, tool)
		if r.Asked.Resource != address || !strings.HasPrefix(r.Asked.Scope, readScope) || r.Got.Scope != readScope || r.Got.Metadata.Resource != address ||
			fmt.Sprint(r.Got.Metadata.Servers, r.Got.Metadata.Scopes) != "["+s.issuer+"] ["+readScope+"]" {
			t.Errorf("%s: %+v", address, r)
		}
		want := "jwt:" + s.issuer + " u1"
		if tool != "forecast" {
			want = weather
		}
		if !strings.Contains(strings.Join(r.Result, "\n"), want) {
			t.Errorf("%s says %q, want %s", address, r.Result, want)
		}
	}
}

// signInAddress is what a program writes for the person.
var signInAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+/[a-z0-9-]+/auth\?[^\s\x1b\x07]+`)

// open is a browser that follows redirects to the program that waits for the code.
func open(t *testing.T, address string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must.Succeed(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	must.Succeed(t, err)
	response, err := (&http.Client{Jar: jar}).Do(r)
	must.Succeed(t, err)
	_ = response.Body.Close() // its address matters
	if got := response.Request.URL; response.StatusCode != http.StatusOK || got.Path != "/callback" {
		t.Errorf("the sign-in ends at %s: %d", got, response.StatusCode)
	}
}

// TestProgramsSignIn runs Codex and Claude Code at the tool server that nginx protects, and at the private registry: each
// signs in, and is connected then.
func TestProgramsSignIn(t *testing.T) {
	codex := program.New(t, "TEST_CODEX")
	claude := program.New(t, "TEST_CLAUDE_CODE")
	s := startAgentSite(t)
	openOne := func(address string) { open(t, address) }
	for name, address := range map[string]string{"weather": s.proxies["nginx"], "registry": s.API + "/mcp"} {
		claude.Run(t, "mcp", "add", "--transport", "http", name, address)
		if text := claude.SignIn(t, signInAddress, openOne, "mcp", "login", name); !strings.Contains(text, "Authenticated with") {
			t.Errorf("Claude Code at %s: %s", address, text)
		}
		if text := claude.Run(t, "mcp", "list"); !strings.Contains(text, address+" (HTTP) - ✔ Connected") {
			t.Errorf("Claude Code at %s afterwards: %s", address, text)
		}
		server := "mcp_servers." + name + ".url=\"" + address + "\""
		if text := codex.SignIn(t, signInAddress, openOne, "-c", `mcp_oauth_credentials_store="file"`, "-c", server, "mcp", "login", name); !strings.Contains(text, "Successfully logged in") {
			t.Errorf("Codex at %s: %s", address, text)
		}
	}
}
