package companies

import (
	"database/sql"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

type object = map[string]any

// site is a service with an operator and a provider.
type site struct {
	*fixture.Service
	e        *fixture.Environment
	operator *fixture.Person
	provider *oidcissuer.Provider
	db       *sql.DB // see database
}

const providers = "/admin/v1/providers"

// startSite starts a service with the provider acme, which speaks for acme.example.
func startSite(t *testing.T, e *fixture.Environment, environ ...string) *site {
	t.Helper()
	s := &site{e: e, provider: oidcissuer.StartProvider(t)}
	s.Service = e.Start(t, append(append(fixture.RegistrySettings(), fixture.RiskPolicy("relaxed")), environ...)...)
	s.operator = e.NewWriter(t, s.Service, "olga@example.com", "operate *")
	s.want(t, 201, "PUT", providers+"/acme", s.settings("create", true))
	return s
}

// settings returns the settings of the provider acme, with some changed.
func (s *site) settings(changes ...any) object {
	all := object{
		"displayName": "Acme", "issuer": s.provider.URL, "clientId": s.provider.ClientID, "clientSecret": s.provider.Secret,
		"domains": []string{"acme.example"}, "networks": []string{"127.0.0.0/8"},
	}
	for i := 0; i < len(changes); i += 2 {
		all[changes[i].(string)] = changes[i+1]
	}
	return all
}

// askForRefresh lets the service ask the provider acme for refresh tokens.
func (s *site) askForRefresh(t *testing.T, changes ...any) {
	t.Helper()
	scopes := []string{"openid", "email", "offline_access"}
	s.want(t, 200, "PUT", providers+"/acme", s.settings(append([]any{"create", true, "scopes", scopes}, changes...)...))
}

// want sends a request of the operator, and returns the answer, which has a status.
func (s *site) want(t *testing.T, status int, method, path string, body any, header ...string) object {
	t.Helper()
	a := apiclient.Call(t, method, s.API+path, body, append(s.operator.Bearer(), header...)...)
	a.WantStatus(t, status)
	var got object
	if len(a.Body) > 0 {
		a.Decode(t, &got)
	}
	return got
}

// wantCode is want for an error with a code.
func (s *site) wantCode(t *testing.T, status int, code, method, path string, body any, header ...string) {
	t.Helper()
	a := apiclient.Call(t, method, s.API+path, body, append(s.operator.Bearer(), header...)...)
	apiclient.WantAuthError(t, a.WantStatus(t, status), code)
}

// browser is a browser that follows redirects.
type browser struct {
	t      *testing.T
	client *http.Client
	api    string
	from   string // the address that a proxy says; empty without a proxy
	path   string // of the page
	body   string
	status int
}

func (s *site) newBrowser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must.Succeed(t, err)
	return &browser{t: t, client: &http.Client{Jar: jar}, api: s.API}
}

// open opens a page and follows redirects.
func (b *browser) open(address string) *browser {
	b.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = b.api + address
	}
	r, err := http.NewRequestWithContext(b.t.Context(), "GET", address, nil)
	must.Succeed(b.t, err)
	return b.send(r)
}

func (b *browser) send(r *http.Request) *browser {
	b.t.Helper()
	if b.from != "" {
		r.Header.Set("X-Forwarded-For", b.from)
	}
	response, err := b.client.Do(r)
	must.Succeed(b.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.Succeed(b.t, err)
	b.path, b.body, b.status = response.Request.URL.RequestURI(), string(text), response.StatusCode
	return b
}

// post sends a form.
func (b *browser) post(path string, fields ...string) *browser {
	b.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.postTo(b.api+path, form)
}

func (b *browser) postTo(address string, form url.Values) *browser {
	b.t.Helper()
	return b.postAs("same-origin", address, form)
}

// postAs sends a form of a page that is on the same site or another one.
func (b *browser) postAs(site, address string, form url.Values) *browser {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "POST", address, strings.NewReader(form.Encode()))
	must.Succeed(b.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", site)
	return b.send(r)
}

// begin requests a sign-in and returns the address of the provider's page, without opening it.
func (b *browser) begin(path string) string {
	b.t.Helper()
	return b.location(b.api+path, 303)
}

// location opens an address and returns where it redirects to.
func (b *browser) location(address string, status int) string {
	b.t.Helper()
	once := &http.Client{Jar: b.client.Jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	r, err := http.NewRequestWithContext(b.t.Context(), "GET", address, nil)
	must.Succeed(b.t, err)
	response, err := once.Do(r)
	must.Succeed(b.t, err)
	text, _ := io.ReadAll(response.Body) // for the message only
	_ = response.Body.Close()
	if response.StatusCode != status {
		b.t.Fatalf("%s: status %d, want %d: %s", address, response.StatusCode, status, text)
	}
	return response.Header.Get("Location")
}

// signIn signs in at the provider acme.
func (b *browser) signIn() *browser {
	b.t.Helper()
	return b.open("/console/sign-in/company/acme?return=/console/account")
}

// follow opens the link of the page with a text.
func (b *browser) follow(text string) *browser {
	b.t.Helper()
	before, _, found := strings.Cut(b.body, `">`+text+"</a>")
	if !found {
		b.t.Fatalf("%s has no link %q: %s", b.path, text, pageText(b.body))
	}
	return b.open(html.UnescapeString(before[strings.LastIndex(before, `href="`)+len(`href="`):]))
}

// askLink begins to link a company sign-in, and signs in there. A question follows.
func (b *browser) askLink(provider string) *browser {
	b.t.Helper()
	return b.post("/console/account/companies/"+provider+"/link").want(200, "Go on").follow("Go on")
}

// link links a company sign-in.
func (b *browser) link(provider string) *browser {
	b.t.Helper()
	b.askLink(provider).want(200, "Link this company sign-in?")
	return b.post(linkPath, "state", hidden(b, "state"))
}

const linkPath = "/console/account/companies/link"

// hidden returns the value of a hidden field of the page that a browser shows.
func hidden(b *browser, name string) string {
	b.t.Helper()
	_, rest, _ := strings.Cut(b.body, `name="`+name+`" value="`)
	value, _, _ := strings.Cut(rest, `"`)
	return html.UnescapeString(value)
}

// want fails the test unless the last page has a status and texts.
func (b *browser) want(status int, texts ...string) *browser {
	b.t.Helper()
	if b.status != status {
		b.t.Errorf("%s has status %d, want %d: %s", b.path, b.status, status, pageText(b.body))
	}
	for _, text := range texts {
		if !strings.Contains(b.body, text) {
			b.t.Errorf("%s does not have %q: %s", b.path, text, pageText(b.body))
		}
	}
	return b
}

// pageText returns the part of a page that differs from others.
func pageText(body string) string {
	if _, main, ok := strings.Cut(body, "<main"); ok {
		return main
	}
	return body
}

// events returns the events of a type, newest first.
func (s *site) events(t *testing.T, kind string) (all []object) {
	t.Helper()
	for _, e := range s.want(t, 200, "GET", "/admin/v1/audit?type="+kind, nil)["events"].([]any) {
		all = append(all, e.(object)["details"].(object))
	}
	return all
}

// grants returns the grants of a person by their e-mail address: "ACTION RESOURCE ORIGIN".
func (s *site) grants(t *testing.T, email string) (all []string) {
	t.Helper()
	found := s.want(t, 200, "GET", "/admin/v1/people?q="+url.QueryEscape(email), nil)["people"].([]any)
	if len(found) != 1 {
		t.Fatalf("there are %d people with %s", len(found), email)
	}
	id := found[0].(object)["id"]
	for _, g := range s.want(t, 200, "GET", "/admin/v1/grants?limit=100", nil)["grants"].([]any) {
		g := g.(object)
		if g["person"] == id {
			all = append(all, strings.Join([]string{g["action"].(string), g["resource"].(string), g["origin"].(string)}, " "))
		}
	}
	return all
}
