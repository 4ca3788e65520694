package authorization

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

type object = map[string]any

const (
	admin      = "/admin/v1"
	weather    = "com.example/weather"
	weatherURL = "https://tools.example.com/weather/mcp"
	notes      = "com.example/notes"
	notesURL   = "https://tools.example.com/notes/mcp"
	ada        = "ada@example.com"
	callback   = "http://127.0.0.1/callback"
	verifier   = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636, appendix B
)

// site is two instances with an operator, two tool servers, which are resources, the client editor, and the rule that
// Ada may call both servers.
type site struct {
	*fixture.Service
	other       *fixture.Service
	environment *fixture.Environment
	operator    *fixture.Person
	ada         *fixture.Person
	origin      string
	key         string // of a proxy
}

// settings returns the settings of an instance at PUBLIC_URL.
func settings(origin string, more ...string) []string {
	return append(append(fixture.RegistrySettings(), fixture.RiskPolicy("relaxed"), "OAUTH=on", "DECIDE=on", "PUBLIC_URL="+origin), more...)
}

func startSite(t *testing.T, e *fixture.Environment, more ...string) *site {
	t.Helper()
	port := instance.FreePort()
	s := &site{environment: e, origin: "http://localhost:" + port}
	s.Service = e.Start(t, append(settings(s.origin, more...), "PORT="+port)...)
	s.operator = e.NewWriter(t, s.Service, "olga@example.com", "operate *", "publish *", "edit *", "review *")
	s.ada = e.NewPerson(t, ada)
	s.publish(t, weather, weatherURL)
	s.publish(t, notes, notesURL)
	for name, url := range map[string]string{"weather": weatherURL, "notes": notesURL} {
		s.put(t, "/resources/"+name, object{"url": url, "servers": []string{"com.example/" + name}, "scopes": []string{"read", "write"}, "minTrust": "UNVERIFIED"})
	}
	s.put(t, "/clients/editor", object{"name": "The Editor", "redirectUris": []string{callback}})
	s.put(t, "/access-rules/ada", object{"order": 10, "effect": "allow", "subjects": []string{"person:" + ada}, "servers": []string{"com.example/*"}})
	e.RunCommand(t, "", "service-account", "set", "proxy", "--description", "a proxy")
	e.RunCommand(t, "", "grant", "add", "--service", "proxy", "--action", "operate", "--resource", "*")
	s.key = s.newToken(t, "proxy", "decide")
	return s
}

// startOther starts a second instance with the same records.
func (s *site) startOther(t *testing.T, more ...string) {
	t.Helper()
	s.other = s.environment.Start(t, settings(s.origin, more...)...)
}

func (s *site) newToken(t *testing.T, service, scope string) string {
	t.Helper()
	var made struct{ Token string }
	s.manage(t, "POST", "/service-accounts/"+service+"/tokens", object{"name": "t", "scopes": []string{scope}}).
		WantStatus(t, http.StatusCreated).Decode(t, &made)
	return made.Token
}

// manage calls the API of administration as the operator.
func (s *site) manage(t *testing.T, method, path string, body any) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, method, s.API+admin+path, body, s.operator.Bearer()...)
}

// put stores an object of the operator.
func (s *site) put(t *testing.T, path string, body object) apiclient.Response {
	t.Helper()
	a := s.manage(t, "PUT", path, body)
	if a.Status != http.StatusOK && a.Status != http.StatusCreated {
		t.Fatalf("PUT %s: %d %s", path, a.Status, a.Body)
	}
	return a
}

// publish publishes a server with a remote URL.
func (s *site) publish(t *testing.T, name, remote string) {
	t.Helper()
	document := fixture.NewServerDocument(name, "1.0.0")
	document["remotes"] = []object{{"type": "streamable-http", "url": remote}}
	apiclient.Call(t, "POST", s.API+"/v0.1/publish", document, s.operator.Bearer()...).WantStatus(t, http.StatusOK)
}

// setQuarantine puts a server into quarantine, or releases it.
func (s *site) setQuarantine(t *testing.T, name string, on bool) {
	t.Helper()
	if on {
		s.environment.RunCommand(t, "", "registry", "quarantine", name, "--reason", "It sends data elsewhere.")
	} else {
		s.environment.RunCommand(t, "", "registry", "release", name)
	}
}

// request returns an authorization request of the client editor, with changes given by name and value; an empty value
// removes a parameter.
func (s *site) request(changes ...string) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {"editor"}, "redirect_uri": {callback}, "state": {"st ate&"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "resource": {weatherURL},
	}
	for i := 0; i < len(changes); i += 2 {
		if changes[i+1] == "" {
			q.Del(changes[i])
		} else {
			q.Set(changes[i], changes[i+1])
		}
	}
	return q
}

// newBrowser returns a browser that stops at the way back to a client.
func (s *site) newBrowser(t *testing.T) *webtest.Browser {
	t.Helper()
	b := webtest.New(t, s.API)
	b.Client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(r.URL.String(), b.Base+"/") {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return b
}

// begin opens an authorization request in a browser.
func (s *site) begin(b *webtest.Browser, q url.Values) int {
	b.T.Helper()
	return b.Try(b.Request(http.MethodGet, "/oauth2/authorize?"+q.Encode(), nil, ""))
}

// signIn signs Ada in at the page that the browser shows.
func signIn(b *webtest.Browser, email string) {
	b.T.Helper()
	b.Press("Sign in", http.StatusOK, "email", email, "password", fixture.Password)
}

// wayBack returns the parameters of the address of a client to which a page or a redirect leads.
func wayBack(b *webtest.Browser) url.Values {
	b.T.Helper()
	address := b.Page.Header.Get("Location")
	if link := webtest.Find(b.Page.Root, func(n *node) bool {
		return n.Data == "a" && strings.HasPrefix(webtest.Attribute(n, "href"), callbackHost)
	}); address == "" && link != nil {
		address = webtest.Attribute(link, "href")
	}
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, callbackHost) {
		b.T.Fatalf("%s (%d) leads to %q, and to no client:\n%s", b.Page.URL, b.Page.Status, address, b.Text())
	}
	return u.Query()
}

// authorize lets Ada agree to a request, and returns the parameters that the client gets.
func (s *site) authorize(t *testing.T, q url.Values) url.Values {
	t.Helper()
	b := s.newBrowser(t)
	b.SignIn(ada, fixture.Password)
	s.begin(b, q)
	if strings.Contains(b.Text(), "Allow") {
		b.Press("Allow", http.StatusOK)
	}
	return wayBack(b)
}

// code returns a code for a request.
func (s *site) code(t *testing.T, q url.Values) string {
	t.Helper()
	got := s.authorize(t, q)
	if got.Get("code") == "" || got.Get("state") != q.Get("state") || got.Get("iss") != s.origin {
		t.Fatalf("the client gets %v", got)
	}
	return got.Get("code")
}

// tokens are what the token endpoint returns.
type tokens struct {
	Access    string `json:"access_token"`
	Refresh   string `json:"refresh_token"`
	Type      string `json:"token_type"`
	ExpiresIn int    `json:"expires_in"`
	Scope     string `json:"scope"`
	Error     string `json:"error"`
	Text      string `json:"error_description"`
}

// post sends a form to an endpoint of an instance.
func post(t *testing.T, of *fixture.Service, path string, form url.Values, header ...string) (int, http.Header, tokens) {
	t.Helper()
	a := apiclient.Call(t, http.MethodPost, of.API+path, form.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
	var got tokens
	if len(a.Body) > 0 {
		a.Decode(t, &got)
	}
	if a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s may be kept: %v", path, a.Header)
	}
	return a.Status, a.Header, got
}

// exchange returns the form for a code of the client editor, with changes as request has them.
func exchange(code string, changes ...string) url.Values {
	return with(url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}, "client_id": {"editor"},
		"code_verifier": {verifier}, "resource": {weatherURL},
	}, changes...)
}

// renewal returns the form for a refresh token of the client editor.
func renewal(token string, changes ...string) url.Values {
	return with(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {"editor"}}, changes...)
}

func with(form url.Values, changes ...string) url.Values {
	for i := 0; i < len(changes); i += 2 {
		if changes[i+1] == "" {
			form.Del(changes[i])
		} else {
			form.Set(changes[i], changes[i+1])
		}
	}
	return form
}

// token returns the tokens for a request to which Ada agrees.
func (s *site) token(t *testing.T, changes ...string) tokens {
	t.Helper()
	q := s.request(changes...)
	status, _, got := post(t, s.Service, "/oauth2/token", exchange(s.code(t, q), "resource", q.Get("resource"), "redirect_uri", q.Get("redirect_uri")))
	if status != http.StatusOK || got.Access == "" || got.Type != "Bearer" {
		t.Fatalf("the token endpoint: %d %+v", status, got)
	}
	return got
}

// wantRefused checks that a form is refused with a code of RFC 6749.
func wantRefused(t *testing.T, of *fixture.Service, what string, form url.Values, code string, header ...string) {
	t.Helper()
	status, _, got := post(t, of, "/oauth2/token", form, header...)
	want := http.StatusBadRequest
	if code == "invalid_client" {
		want = http.StatusUnauthorized
	}
	if status != want || got.Error != code || got.Access != "" {
		t.Errorf("%s: %d %+v, want %s", what, status, got, code)
	}
}

// ask returns the status of a call of a tool of a server with a token, as a proxy gets it from an instance.
func (s *site) ask(t *testing.T, of *fixture.Service, token, address string) int {
	t.Helper()
	scheme, rest, _ := strings.Cut(address, "://")
	host, path, _ := strings.Cut(rest, "/")
	return apiclient.Call(t, "POST", of.API+"/decide/http",
		object{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": object{"name": "forecast", "arguments": object{}}},
		"x-tollgate-key", s.key, "X-Forwarded-Method", "POST", "X-Forwarded-Proto", scheme, "X-Forwarded-Host", host,
		"X-Forwarded-Uri", "/"+path, "Authorization", "Bearer "+token).Status
}

// claims returns what a token says.
func claims(t *testing.T, token string) (header, payload object) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is no JWT", token)
	}
	for i, into := range []*object{&header, &payload} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		must.Succeed(t, err)
		must.Succeed(t, json.Unmarshal(text, into))
	}
	return header, payload
}

// do sends a request, reads the answer into a value, and returns the status.
func do(t *testing.T, r *http.Request, into any) int {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	must.Succeed(t, err)
	defer func() { _ = response.Body.Close() }() // it was only read
	if err := json.NewDecoder(response.Body).Decode(into); err != nil && response.StatusCode == http.StatusOK {
		t.Errorf("%s: %v", r.URL, err)
	}
	return response.StatusCode
}

// statusOf returns the status of a request that is not compared with the description of the API.
func statusOf(t *testing.T, method, address string, header ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	must.Succeed(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	must.Succeed(t, err)
	_ = response.Body.Close() // it is not read
	return response.StatusCode
}
