package access

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/adapters/decideapi/extmcppb"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

type object = map[string]any

const (
	weather, maps = "com.example/weather", "com.example/maps"
	host          = "com.example.weather"
)

// site has two instances, if they can share a database: changes are made at one, and the other decides.
type site struct {
	e              *fixture.Environment
	one, other     *fixture.Service
	olga, ada, bob *fixture.Person // an operator, a person at FULL_TRUST, and one at UNVERIFIED
	rita           *fixture.Person // a reviewer: olga may not release what she has published
}

// startFunc is the method of an environment that starts an instance: in this process, or in one of its own.
type startFunc func(e *fixture.Environment, t *testing.T, environ ...string) *fixture.Service

func openSite(t *testing.T, e *fixture.Environment, start startFunc) *site {
	t.Helper()
	e.Environ = append(append(e.Environ, fixture.RegistrySettings()...), "DECIDE=on", "DECIDE_STRIP_TOKEN=true")
	s := &site{e: e, one: start(e, t)}
	if s.other = s.one; e.Shared {
		s.other = e.Start(t)
	}
	s.olga = e.NewWriter(t, s.one, "olga@example.com", "operate ", "publish *")
	s.rita = e.NewWriter(t, s.one, "rita@example.com", "review *")
	s.ada = e.NewWriter(t, s.one, "ada@example.com")
	s.bob = e.NewPerson(t, "bob@example.com")
	s.bob.Login(t, s.one)
	for _, name := range []string{weather, maps} {
		s.olga.PostJSON(t, s.one, "/v0.1/publish", fixture.NewServerDocument(name, "1.0.0")).WantStatus(t, http.StatusOK)
	}
	s.setRule(t, "ada", object{"effect": "allow", "subjects": []string{"person:ada@example.com"}, "tools": []string{"forecast", "read_*"}})
	s.setRule(t, "ada-lists", object{
		"effect": "allow", "subjects": []string{"person:ada@example.com"}, "methods": []string{"tools/list", "other"},
	})
	s.setRule(t, "bob", object{"effect": "allow", "subjects": []string{"person:bob@example.com"}, "minTrust": "FULL_TRUST"})
	return s
}

// setRule stores a rule about the server weather.
func (s *site) setRule(t *testing.T, name string, rule object) {
	t.Helper()
	rule["order"], rule["servers"] = 10, []string{weather}
	apiclient.Call(t, "PUT", s.one.API+"/admin/v1/access-rules/"+name, rule, s.olga.Bearer()...).WantStatus(t, http.StatusCreated)
}

// newCall returns a call of a tool by a person.
func newCall(p *fixture.Person, tool string) *call {
	return &call{
		method: "POST", host: host, path: "/mcp", headers: http.Header{"Authorization": {"Bearer " + p.AccessToken}},
		body: fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q}}`, tool),
	}
}

// until waits until the other instance answers a call with a status, after a change that it must know
// within a second.
func (s *site) until(t *testing.T, what string, c *call, status int) {
	t.Helper()
	fixture.AwaitFresh(t, what, func() bool { return ask(t, s.other, c).status == status })
}

// TestEnvoy checks decisions as Envoy gets and applies them.
func TestEnvoy(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := openSite(t, e, (*fixture.Environment).Start)
		s.until(t, "the rules hold", newCall(s.ada, "forecast"), http.StatusOK)
		s.until(t, "the last rule holds", newCall(s.bob, "forecast"), http.StatusForbidden)
		checkAllowed(t, s)
		checkRefused(t, s)
		checkTricks(t, s)
		checkGateway(t, s)
		checkFresh(t, s)
	})
}

// checkAllowed checks what the tool server gets of calls that are allowed.
func checkAllowed(t *testing.T, s *site) {
	t.Helper()
	c := newCall(s.ada, "read_mail")
	for _, name := range []string{"Subject", "Server", "Tool", "Trust", "Rule"} {
		c.headers["X-Tollgate-"+name] = []string{"forged", "twice"}
	}
	o := ask(t, s.other, c)
	for name, want := range map[string]string{
		"Subject": "person:ada@example.com", "Server": weather, "Tool": "read_mail", "Trust": "FULL_TRUST", "Rule": "ada",
	} {
		if got := o.upstream.Values("X-Tollgate-" + name); len(got) != 1 || got[0] != want {
			t.Errorf("the tool server gets the %s %q, want %s", name, got, want)
		}
	}
	if o.upstream.Get("Authorization") != "" {
		t.Error("the tool server gets the token")
	}
	c.body = `{"jsonrpc":"2.0","id":8,"method":"tools/list"}`
	o = ask(t, s.other, c)
	if got := o.upstream.Values("X-Tollgate-Tool"); o.status != http.StatusOK || len(got) != 0 {
		t.Errorf("a list: %d, the tool server gets the tool %q that the client sent", o.status, got)
	}
	c.method, c.body = "GET", ""
	if o = ask(t, s.other, c); o.status != http.StatusOK {
		t.Errorf("a stream of the server: %d", o.status)
	}
}

// checkRefused checks what the client gets of calls that are refused.
func checkRefused(t *testing.T, s *site) {
	t.Helper()
	for name, c := range map[string]struct {
		call      *call
		status    int
		challenge string
	}{
		"another tool":     {newCall(s.ada, "delete_file"), 403, ""},
		"too little trust": {newCall(s.bob, "forecast"), 403, `error="insufficient_user_authentication"`},
		"nobody":           {newCall(&fixture.Person{}, "forecast"), 401, "Bearer"},
		"a bad token":      {newCall(&fixture.Person{AccessToken: "x.y.z"}, "forecast"), 401, `error="invalid_token"`},
	} {
		if name == "nobody" {
			c.call.headers = http.Header{}
		}
		o := ask(t, s.other, c.call)
		if o.status != c.status || !strings.Contains(o.response.Get("WWW-Authenticate"), c.challenge) ||
			(c.challenge == "") != (o.response.Get("WWW-Authenticate") == "") {
			t.Errorf("%s: %d %q", name, o.status, o.response)
		}
		if o.response.Get("X-Tollgate-Decision-Id") == "" || o.response.Get("Content-Type") != "application/json" ||
			!strings.HasPrefix(o.body, `{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":`) {
			t.Errorf("%s: %q %s", name, o.response, o.body)
		}
		if strings.Contains(o.body, "forecast") || strings.Contains(o.body, "delete_file") || strings.Contains(o.body, "ada") {
			t.Errorf("%s: the answer names the tool or the rule: %s", name, o.body)
		}
	}
}

// checkTricks checks calls that a proxy, Tollgate and a tool server could read in different ways.
func checkTricks(t *testing.T, s *site) {
	t.Helper()
	for name, c := range map[string]struct {
		change func(c *call)
		status int
	}{
		"nothing":                     {func(*call) {}, 200},
		"two headers Authorization":   {func(c *call) { c.headers.Add("Authorization", "Bearer "+s.ada.AccessToken) }, 401},
		"another scheme":              {func(c *call) { c.headers.Set("Authorization", "Basic YTpi") }, 401},
		"Mcp-Name of another tool":    {func(c *call) { c.headers.Set("Mcp-Name", "delete_file") }, 200}, // not trusted: the body counts
		"a batch":                     {func(c *call) { c.body = "[" + c.body + "]" }, 403},
		"two of them by themselves":   {func(c *call) { c.raw = true; c.headers.Add("Authorization", "Bearer "+s.ada.AccessToken) }, 401},
		"one by itself":               {func(c *call) { c.raw = true }, 200},
		"the name of another server":  {func(c *call) { c.headers.Set("X-Tollgate-Server", maps) }, 200}, // only the proxy states it
		"the key of a proxy":          {func(c *call) { c.headers.Set("X-Tollgate-Key", "x") }, 200},
		"a batch of two":              {func(c *call) { c.body = "[" + c.body + `,{"jsonrpc":"2.0","id":8,"method":"ping"}]` }, 403},
		"a cut body":                  {func(c *call) { c.sends = 40 }, 403},
		"a cut body in chunks":        {func(c *call) { c.sends = 40; c.headers.Set("Transfer-Encoding", "chunked") }, 403},
		"a body in chunks":            {func(c *call) { c.headers.Set("Transfer-Encoding", "chunked") }, 200},
		"a body shorter than it says": {func(c *call) { c.headers.Set("Content-Length", "1000") }, 403},
		"a body of more than 64 KiB": {func(c *call) {
			c.body = `{"x":"` + strings.Repeat("a", 64<<10) + `",` + c.body[1:]
		}, 403},
		"no body":                   {func(c *call) { c.body = "" }, 403},
		"no JSON":                   {func(c *call) { c.body = "x" }, 403},
		"two tools":                 {func(c *call) { c.body = strings.Replace(c.body, `{"name"`, `{"name":"delete_file","name"`, 1) }, 403},
		"two methods":               {func(c *call) { c.body = `{"method":"tools/list",` + c.body[1:] }, 403},
		"a mark of its own":         {func(c *call) { c.headers.Set("X-Envoy-Auth-Partial-Body", "true") }, 200},
		"an upgrade":                {func(c *call) { c.headers.Set("Upgrade", "websocket") }, 403},
		"a port and upper case":     {func(c *call) { c.host = "COM.Example.weather:443" }, 200},
		"a dot at the end":          {func(c *call) { c.host += "." }, 403},
		"dots":                      {func(c *call) { c.path = "/x/../mcp" }, 403},
		"a code":                    {func(c *call) { c.path = "/%6dcp" }, 403},
		"another port":              {func(c *call) { c.host += ":8443" }, 403},
		"another charset":           {func(c *call) { c.headers.Set("Content-Type", "application/json; charset=utf-7") }, 403},
		"a coding":                  {func(c *call) { c.headers.Set("Content-Encoding", "br") }, 403},
		"UTF-8":                     {func(c *call) { c.headers.Set("Content-Type", "application/json; charset=UTF-8") }, 200},
		"another method of HTTP":    {func(c *call) { c.method = "PUT" }, 403},
		"an encoded slash":          {func(c *call) { c.path = "/mcp%2f.." }, 403},
		"a longer name":             {func(c *call) { c.path = "/mcpx" }, 403},
		"another host":              {func(c *call) { c.host = "com.example.other" }, 403},
		"a token at another server": {func(c *call) { c.host = "com.example.maps" }, 403},
		"a stated server":           {func(c *call) { c.server = maps }, 403},
		"a server stated in place of the address": {func(c *call) { c.host, c.server = "com.example.maps", weather }, 200},
	} {
		asked := newCall(s.ada, "forecast")
		if c.change(asked); ask(t, s.other, asked).status != c.status {
			t.Errorf("%s: %d, want %d", name, ask(t, s.other, asked).status, c.status)
		}
	}
}

// checkGateway checks decisions as agentgateway gets them.
func checkGateway(t *testing.T, s *site) {
	t.Helper()
	conn, err := grpc.NewClient(s.other.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must.Succeed(t, err)
	defer func() { _ = conn.Close() }() // the calls are over
	client := extmcppb.NewExtMcpClient(conn)
	added, err := structpb.NewStruct(object{"tollgate.server": weather, "tollgate.authorization": "Bearer " + s.ada.AccessToken})
	must.Succeed(t, err)
	for tool, allowed := range map[string]bool{"forecast": true, "delete_file": false} {
		got, err := client.CheckRequest(t.Context(), &extmcppb.McpRequest{
			Method: "tools/call", MetadataContext: added, McpRequest: fmt.Appendf(nil, `{"name":%q}`, tool),
		})
		if err != nil || (got.GetPass() != nil) != allowed || (got.GetError().GetCode() == extmcppb.AuthorizationError_PERMISSION_DENIED) == allowed {
			t.Errorf("%s: %v, error %v", tool, got, err)
		}
	}
	got, err := client.CheckResponse(t.Context(), &extmcppb.McpResponse{
		Method: "tools/list", MetadataContext: added,
		McpResponse: []byte(`{"tools":[ {"name":"delete_file"}, {"name":"forecast", "x":1.0} ],"nextCursor":"a"}`),
	})
	if err != nil || string(got.GetMutated()) != `{"tools":[ {"name":"forecast", "x":1.0} ],"nextCursor":"a"}` {
		t.Errorf("%v, error %v", got, err)
	}
}

// checkFresh checks that changes at one instance hold at the other within a second.
func checkFresh(t *testing.T, s *site) {
	t.Helper()
	c := newCall(s.ada, "forecast")
	s.setRule(t, "nobody", object{"effect": "deny", "subjects": []string{"anyone"}})
	s.until(t, "a new rule denies", c, http.StatusForbidden)
	apiclient.Call(t, "DELETE", s.one.API+"/admin/v1/access-rules/nobody", nil, s.olga.Bearer()...).WantStatus(t, http.StatusNoContent)
	s.until(t, "the rule is gone", c, http.StatusOK)
	s.endSession(t)
	s.until(t, "the session has ended", c, http.StatusUnauthorized)
	s.ada.Login(t, s.one)
	s.until(t, "a new session", newCall(s.ada, "forecast"), http.StatusOK)
	s.quarantine(t)
	s.until(t, "quarantine", newCall(s.ada, "forecast"), http.StatusForbidden)
	s.endQuarantine(t)
	s.until(t, "the end of quarantine", newCall(s.ada, "forecast"), http.StatusOK)
	s.e.RunCommand(t, "", "user", "disable", "--email", s.ada.Email)
	s.until(t, "a person who has left", newCall(s.ada, "forecast"), http.StatusUnauthorized)
}

// endSession ends the session of ada.
func (s *site) endSession(t *testing.T) {
	t.Helper()
	id, _ := fixture.ReadSession(t, s.one, s.ada)
	s.ada.PostJSON(t, s.one, "/auth/logout", object{"sessionId": id}).WantStatus(t, http.StatusOK)
}

// quarantine puts the server weather into quarantine.
func (s *site) quarantine(t *testing.T) {
	t.Helper()
	s.rita.PostJSON(t, s.one, "/v0.1/x/dev.tollgate/quarantine", object{"serverName": weather, "reason": "It sends data elsewhere."}).
		WantStatus(t, http.StatusOK)
}

func (s *site) endQuarantine(t *testing.T) {
	t.Helper()
	path := "/v0.1/x/dev.tollgate/quarantine?serverName=" + fixture.EscapePath(weather)
	apiclient.Call(t, "DELETE", s.one.API+path, nil, s.rita.Bearer()...).WantStatus(t, http.StatusNoContent)
}
