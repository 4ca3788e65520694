package access

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// The names by which the filters of Envoy leave metadata.
const (
	jwtFilter    = "envoy.filters.http.jwt_authn"
	mcpFilter    = "envoy.filters.http.mcp"
	formerFilter = "mcp_proxy"
)

// want sends a call of the API of administration as the operator.
func (s *site) want(t *testing.T, status int, method, path string, body any) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, method, s.one.API+"/admin/v1"+path, body, s.olga.Bearer()...).WantStatus(t, status)
}

// newKey makes a service account with grants and a token.
func (s *site) newKey(t *testing.T, name, scope string, grants ...string) string {
	t.Helper()
	s.e.RunCommand(t, "", "service-account", "set", name, "--description", "a proxy")
	for _, g := range grants {
		s.e.RunCommand(t, "", "grant", "add", "--service", name, "--action", g, "--resource", "*")
	}
	var made struct{ Token string }
	s.want(t, http.StatusCreated, "POST", "/service-accounts/"+name+"/tokens", object{"name": "t", "scopes": []string{scope}}).
		Decode(t, &made)
	return made.Token
}

// addProvider adds the provider acme, which speaks for example.com.
func (s *site) addProvider(t *testing.T) *oidcissuer.Provider {
	t.Helper()
	p := oidcissuer.StartProvider(t)
	s.want(t, http.StatusCreated, "PUT", "/providers/acme", object{
		"issuer": p.URL, "clientId": p.ClientID, "clientSecret": p.Secret, "domains": []string{"example.com"},
		"networks": []string{"127.0.0.0/8"}, "audiences": []string{"https://tools.example.com"}, "scopeClaim": "scp",
	})
	return p
}

// startStrict starts an instance that requires the certificate of a proxy, and trusts the headers of MCP. It
// returns what a proxy connects with.
func (s *site) startStrict(t *testing.T) (*fixture.Service, *tls.Config) {
	t.Helper()
	authority := testcert.NewAuthority(t)
	server, proxy := authority.Issue(t, "server"), authority.Issue(t, "proxy")
	strict := s.e.Start(t, "DECIDE_TRUST_HEADERS=true", "GRPC_SERVER_USE_TLS=true", "GRPC_CLIENT_TLS_CACERT="+authority.CertFile,
		"GRPC_SERVER_TLS_CERT="+server.CertFile, "GRPC_SERVER_TLS_KEY="+server.KeyFile)
	return strict, &tls.Config{
		RootCAs: authority.Pool(), ServerName: "server", Certificates: []tls.Certificate{proxy.Pair()}, MinVersion: tls.VersionTLS12,
	}
}

// TestWire checks what decisions take from the filters of Envoy and from the headers of MCP.
func TestWire(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := openSite(t, e, (*fixture.Environment).Start)
		provider := s.addProvider(t)
		s.setRule(t, "devs", object{"effect": "allow", "subjects": []string{"group:acme/devs"}})
		strict, proof := s.startStrict(t)
		s.until(t, "the rules hold", newCall(s.ada, "forecast"), http.StatusOK)
		s.checkVerified(t, provider, strict, proof)
		s.checkFilter(t)
		s.checkHeaders(t, strict, proof)
		s.checkOtherTokens(t)
		s.checkLinked(t, provider)
		s.checkSimulated(t)
		for _, form := range []string{"table", "json"} {
			if text := e.RunCommand(t, "", "provider", "list", "--output", form); !strings.Contains(text, "https://tools.example.com") ||
				!strings.Contains(text, "scp") {
				t.Errorf("the list of providers is %s", text)
			}
		}
	})
}

// checkVerified checks from whom a token counts that the filter jwt_authn has verified.
func (s *site) checkVerified(t *testing.T, p *oidcissuer.Provider, strict *fixture.Service, proof *tls.Config) {
	t.Helper()
	claims := func(changes ...any) object {
		all := object{"iss": p.URL, "sub": "robot", "exp": time.Now().Add(time.Hour).Unix(), "groups": []any{"devs"}}
		for i := 0; i < len(changes); i += 2 {
			all[changes[i].(string)] = changes[i+1]
		}
		return object{"acme": all}
	}
	key := s.newKey(t, "envoy", "decide", "operate")
	bob := "Bearer " + s.bob.AccessToken
	for name, c := range map[string]struct {
		at       *fixture.Service
		key      string
		verified object
		bearer   string
		status   int
	}{
		"a key with the scope decide":  {s.other, key, claims(), "", 200},
		"a certificate":                {strict, "", claims(), "", 200},
		"no proof":                     {s.other, "", claims(), "", 401},
		"a key of another scope":       {s.other, s.newKey(t, "reader", "registry:read", "operate"), claims(), "", 401},
		"a key without the grant":      {s.other, s.newKey(t, "stranger", "decide"), claims(), "", 401},
		"a key of no account":          {s.other, "tgs_none", claims(), "", 401},
		"the token of a person as key": {s.other, s.olga.AccessToken, claims(), "", 401},
		"another issuer":               {s.other, key, claims("iss", "https://login.example.org"), "", 401},
		"a token that has ended":       {s.other, key, claims("exp", time.Now().Add(-2*time.Minute).Unix()), "", 401},
		"another group":                {s.other, key, claims("groups", []any{"ops"}), "", 403},
		"no token":                     {s.other, key, object{"acme": "none"}, "", 401},
		"a header too":                 {s.other, key, claims(), bob, 403}, // bob, who needs more trust
	} {
		asked := newCall(s.ada, "forecast")
		asked.key, asked.filters = c.key, map[string]object{jwtFilter: c.verified}
		if asked.headers = (http.Header{}); c.bearer != "" {
			asked.headers.Set("Authorization", c.bearer)
		}
		if c.at == strict {
			asked.tls = proof
		}
		o := ask(t, c.at, asked)
		if o.status != c.status {
			t.Errorf("%s: %d %s, want %d", name, o.status, o.reason, c.status)
		}
		if got := o.upstream.Get("X-Tollgate-Subject"); o.status == http.StatusOK && got != "jwt:"+p.URL+" robot" {
			t.Errorf("%s: the subject is %q", name, got)
		}
	}
}

// checkFilter checks that what the MCP filter of Envoy has read counts before the body.
func (s *site) checkFilter(t *testing.T) {
	t.Helper()
	calls := func(tool string) object {
		return object{"method": "tools/call", "id": 9.0, "params": object{"name": tool}}
	}
	for name, c := range map[string]struct {
		filters map[string]object
		tool    string // in the body; empty without a body
		status  int
		seen    string // the tool that the tool server gets
	}{
		"a tool":               {map[string]object{mcpFilter: calls("read_mail")}, "", 200, "read_mail"},
		"another tool":         {map[string]object{mcpFilter: calls("delete_file")}, "", 403, ""},
		"by its former name":   {map[string]object{formerFilter: calls("read_mail")}, "", 200, "read_mail"},
		"the newer counts":     {map[string]object{mcpFilter: calls("delete_file"), formerFilter: calls("forecast")}, "", 403, ""},
		"not the body":         {map[string]object{mcpFilter: calls("read_mail")}, "delete_file", 200, "read_mail"},
		"no tool in the body":  {map[string]object{mcpFilter: calls("delete_file")}, "forecast", 403, ""},
		"a list":               {map[string]object{mcpFilter: {"method": "tools/list"}}, "", 200, ""},
		"a part of the body":   {map[string]object{mcpFilter: {"method": "tools/list", "is_exceeding_limit": true}}, "delete_file", 403, ""},
		"without a method":     {map[string]object{mcpFilter: {"id": 1.0}}, "forecast", 200, "forecast"},
		"a call without name":  {map[string]object{mcpFilter: {"method": "tools/call"}}, "forecast", 403, ""},
		"of some other filter": {map[string]object{"envoy.filters.http.lua": calls("forecast")}, "delete_file", 403, ""},
	} {
		asked := newCall(s.ada, c.tool)
		if asked.filters = c.filters; c.tool == "" {
			asked.body = ""
		}
		o := ask(t, s.other, asked)
		if got := o.upstream.Get("X-Tollgate-Tool"); o.status != c.status || got != c.seen {
			t.Errorf("%s: %d %s, the tool %q, want %d %q", name, o.status, o.reason, got, c.status, c.seen)
		}
	}
}

// checkHeaders checks the headers Mcp-Method and Mcp-Name where they are trusted, and how the name of a tool
// is written that is no plain ASCII.
func (s *site) checkHeaders(t *testing.T, strict *fixture.Service, proof *tls.Config) {
	t.Helper()
	for name, c := range map[string]struct {
		method, tool, body string // the body is that of a call of a tool; empty without one
		reason             string // empty if the call is allowed
	}{
		"both say the same":           {"tools/call", "forecast", "forecast", ""},
		"the tool as base64":          {"tools/call", "=?base64?Zm9yZWNhc3Q=?=", "forecast", ""},
		"only the tool":               {"", "forecast", "forecast", ""},
		"another tool":                {"tools/call", "read_mail", "forecast", "header_mismatch"},
		"another tool as base64":      {"tools/call", "=?base64?cmVhZF9tYWls?=", "forecast", "header_mismatch"},
		"a tool that is not allowed":  {"tools/call", "forecast", "delete_file", "header_mismatch"},
		"another method":              {"tools/list", "", "forecast", "header_mismatch"},
		"base64 that is wrong":        {"tools/call", "=?base64?Zm9y?ZWNhc3Q?=", "forecast", "header_mismatch"},
		"without a body":              {"tools/call", "forecast", "", ""},
		"base64 without a body":       {"tools/call", "=?base64?cmVhZF9tYWls?=", "", ""},
		"without a body, not allowed": {"tools/call", "delete_file", "", "default"},
		"without a body, no base64":   {"tools/call", "=?base64?x?=", "", "unreadable"},
		"without a body and a method": {"", "forecast", "", "unreadable"},
		"a call without a tool":       {"tools/call", "", "", "unreadable"},
	} {
		asked := newCall(s.ada, c.body)
		if asked.tls = proof; c.body == "" {
			asked.body = ""
		}
		for header, value := range map[string]string{"Mcp-Method": c.method, "Mcp-Name": c.tool} {
			if value != "" {
				asked.headers.Set(header, value)
			}
		}
		if o := ask(t, strict, asked); o.reason != c.reason || (o.status == http.StatusOK) != (c.reason == "") {
			t.Errorf("%s: %d %q, want %q", name, o.status, o.reason, c.reason)
		}
	}
	o := ask(t, s.other, newCall(s.ada, "read_größe"))
	if got := o.upstream.Get("X-Tollgate-Tool"); got != "=?base64?cmVhZF9ncsO2w59l?=" {
		t.Errorf("the tool server gets the tool %q", got)
	}
}

// checkLinked checks that a token that a question of AuthZEN names is its person, if the identity is linked.
func (s *site) checkLinked(t *testing.T, p *oidcissuer.Provider) {
	t.Helper()
	key := s.newKey(t, "authzen", "decide", "operate")
	ask := func() bool {
		t.Helper()
		var got struct{ Decision bool }
		apiclient.Call(t, "POST", s.other.API+"/access/v1/evaluation", object{
			"subject": object{"type": "jwt", "id": p.URL + " u1"}, "action": object{"name": "tools/call"},
			"resource": object{"type": "mcp_tool", "id": "deploy", "properties": object{"server": weather}},
		}, "Authorization", "Bearer "+key).WantStatus(t, http.StatusOK).Decode(t, &got)
		return got.Decision
	}
	if ask() {
		t.Error("a token that is not linked is in a group")
	}
	p.SignIn("u1", s.ada.Email, "groups", []string{"devs"})
	signIn(t, s.one)
	fixture.AwaitFresh(t, "the groups of the linked identity", ask)
}

// checkSimulated checks that the simulation of a log takes groups and grants from the service.
func (s *site) checkSimulated(t *testing.T) {
	t.Helper()
	file := func(name, content string) string {
		path := filepath.Join(s.e.Dir, name)
		fixture.WriteFile(t, path, content)
		return path
	}
	const line = `{"@message":"a call of a server was decided","effect":"deny","reason":"default","subject":"person:%s",` +
		`"server":"com.example/weather","method":"tools/call","tool":"deploy","trust":"FULL_TRUST"}` + "\n"
	log := file("decisions.log", fmt.Sprintf(line+line+line+line, s.ada.Email, s.bob.Email, s.olga.Email, "gone@example.com"))
	before := file("before.json", `{"apiVersion":"tollgate.dev/v1","kind":"State","accessRules":[]}`)
	after := file("after.json", `{"apiVersion":"tollgate.dev/v1","kind":"State","accessRules":[{"name":"a","order":1,"effect":"allow",`+
		`"subjects":["group:acme/devs","grant:publish"],"servers":["*"]}]}`)
	for want, service := range map[string][]string{
		"4 0 0 4 0 0 0": nil, "4 0 1 1 2 0 0": {"--server", s.one.API},
	} {
		environ := s.e.Environ
		s.e.Environ = append(slices.Clone(environ), "TOLLGATE_TOKEN="+s.olga.AccessToken)
		got := s.e.RunCommand(t, "", append([]string{"access", "simulate", "--old", before, "--new", after, log}, service...)...)
		s.e.Environ = environ
		if !strings.Contains(strings.Join(strings.Fields(got), " "), " REFUSED "+want) {
			t.Errorf("with %v: %s, want %s", service, got, want)
		}
	}
}

// checkOtherTokens checks that a token of something else is a bad token, and not that of anyone.
func (s *site) checkOtherTokens(t *testing.T) {
	t.Helper()
	s.setRule(t, "anyone", object{"effect": "allow", "subjects": []string{"anyone"}, "tools": []string{"open"}})
	nobody := newCall(&fixture.Person{}, "open")
	nobody.headers = http.Header{}
	s.until(t, "a tool for anyone", nobody, http.StatusOK)
	var made struct{ Token string }
	s.want(t, http.StatusCreated, "PUT", "/views/weather", object{"include": []string{weather}, "access": "token"})
	s.want(t, http.StatusCreated, "POST", "/views/weather/tokens", object{"name": "t"}).Decode(t, &made)
	for name, c := range map[string]struct{ token, host string }{
		"a view of the server":   {made.Token, host},
		"a view, at another one": {made.Token, "com.example.maps"},
		"a refresh token":        {s.ada.RefreshToken, host},
	} {
		asked := newCall(&fixture.Person{AccessToken: c.token}, "open")
		if asked.host = c.host; ask(t, s.other, asked).status != http.StatusUnauthorized {
			t.Errorf("the token of %s: %d", name, ask(t, s.other, asked).status)
		}
	}
}
