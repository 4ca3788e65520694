package companies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	realSecret = "100% a+secret: of the client"
	realMFA    = "urn:example:mfa"
)

// realProvider is an issuer of oidc-provider, a provider that others have written
// (test/servers/oidc/provider.mjs).
type realProvider struct {
	t      *testing.T
	Issuer string
	people object
}

var realProviders atomic.Int64

// startReal makes an issuer with two clients of the service: tollgate, which has a secret, and pkce.
// It has pages, or it signs in who is set by signIn.
func startReal(t *testing.T, s *fixture.Service, pages bool) *realProvider {
	t.Helper()
	address := os.Getenv("TEST_OIDC_PROVIDER")
	if address == "" {
		t.Skip("needs oidc-provider: run the test by test/servers/with.sh, or set TEST_OIDC_PROVIDER to what `make servers` prints")
	}
	p := &realProvider{t: t, Issuer: fmt.Sprintf("%s/t%d-%d", address, os.Getpid(), realProviders.Add(1)), people: object{}}
	client := func(id, name string, more object) object {
		more["client_id"], more["grant_types"] = id, []string{"authorization_code", "refresh_token"}
		more["redirect_uris"] = []string{s.API + "/console/sign-in/company/" + name + "/callback"}
		more["backchannel_logout_uri"] = s.API + "/auth/company/" + name + "/logout"
		return more
	}
	p.send("PUT", "", object{"pages": pages, "people": p.people, "clients": []object{
		client("tollgate", "acme", object{"client_secret": realSecret, "backchannel_logout_session_required": true}),
		client("pkce", "pkce", object{"token_endpoint_auth_method": "none", "id_token_signed_response_alg": "ES256"}),
	}})
	return p
}

func (p *realProvider) send(method, path string, body any) {
	p.t.Helper()
	p.read(method, path, body, nil)
}

// read sends a request, and reads the answer into a value unless that is nil.
func (p *realProvider) read(method, path string, body, into any) {
	p.t.Helper()
	text, err := json.Marshal(body)
	must.Succeed(p.t, err)
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.Issuer+path, bytes.NewReader(text))
	must.Succeed(p.t, err)
	response, err := http.DefaultClient.Do(r)
	must.Succeed(p.t, err)
	defer func() { _ = response.Body.Close() }() // it was only read
	if response.StatusCode != http.StatusOK {
		p.t.Fatalf("%s %s: status %d", method, path, response.StatusCode)
	}
	if into == nil {
		return
	}
	must.Succeed(p.t, json.NewDecoder(response.Body).Decode(into))
}

// signIn makes a person, whose browsers sign in next.
func (p *realProvider) signIn(subject, email string, groups []string, more ...any) {
	p.t.Helper()
	person := object{"claims": object{"email": email, "groups": groups, "name": "Somebody"}}
	for i := 0; i < len(more); i += 2 {
		person[more[i].(string)] = more[i+1]
	}
	p.people[subject] = person
	p.send("PUT", "", object{"people": p.people, "who": subject})
}

// remove removes a person.
func (p *realProvider) remove(subject string) {
	p.t.Helper()
	delete(p.people, subject)
	p.send("PUT", "", object{"people": p.people})
}

// settings returns the settings of the provider for the service.
func (p *realProvider) settings(client string, domains ...string) object {
	all := object{
		"displayName": "Acme", "issuer": p.Issuer, "clientId": client, "networks": []string{"127.0.0.0/8"}, "create": true,
		"domains": append([]string{}, domains...), "scopes": []string{"openid", "profile", "email", "groups", "offline_access"},
		"groupGrants":  []object{{"group": "devs", "action": "edit", "resource": "com.acme/*"}},
		"secondFactor": object{"acr": []string{realMFA}, "amr": []string{"hwk"}},
	}
	if client == "tollgate" {
		all["clientSecret"] = realSecret
		all["groupGrants"] = []object{{"group": "devs", "action": "publish", "resource": "com.acme/*"}}
	}
	return all
}

// TestRealProvider lives the life of people at a real provider: the account is made or linked, groups
// give grants, the provider confirms the sessions, its keys change, and leaving it ends everything.
func TestRealProvider(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := &site{e: e, Service: e.Start(t, append(fixture.RegistrySettings(), fixture.RiskPolicy("relaxed"))...)}
		s.operator = e.NewWriter(t, s.Service, "olga@example.com", "operate *")
		p := startReal(t, s.Service, false)
		s.want(t, 201, "PUT", providers+"/acme", p.settings("tollgate", "acme.example"))
		s.want(t, 201, "PUT", providers+"/pkce", p.settings("pkce"))
		if got := e.RunCommand(t, "", "provider", "test", "pkce"); !strings.Contains(got, "discovery") {
			t.Errorf("provider test prints %s", got)
		}
		bert := e.NewWriter(t, s.Service, "bert@acme.example")

		p.signIn("u1", "Ada@acme.example", []string{"devs"})
		ada := s.newBrowser(t).signIn().want(200, "ada@acme.example")
		wantGrants(t, s, "ada@acme.example", "publish com.acme/* provider:acme")
		p.signIn("u2", "bert@acme.example", nil, "acr", realMFA)
		s.newBrowser(t).signIn().want(200, "bert@acme.example")
		s.wantEvents(t, "create", "link")
		s.wantLevel(t, "FULL_TRUST")
		p.signIn("u2", "bert@acme.example", nil, "amr", []string{"pwd", "hwk"})
		pkce := s.newBrowser(t).open("/console/sign-in/company/pkce?return=/console/account").want(200, "bert@acme.example")
		s.wantLevel(t, "FULL_TRUST")
		p.signIn("u2", "bert@acme.example", nil, "amr", []string{"pwd"})
		s.newBrowser(t).signIn().want(200)
		s.wantLevel(t, "LIMITED_TRUST")

		p.signIn("u2", "bert@acme.example", []string{"devs"})
		p.signIn("u1", "ada@acme.example", nil)
		s.checkAgain(t)
		wantGrants(t, s, "ada@acme.example")
		wantGrants(t, s, "bert@acme.example", "edit com.acme/* provider:pkce", "publish com.acme/* provider:acme")
		p.send("POST", "/keys", nil)
		s.checkAgain(t) // with the refresh tokens of the first check, and ID tokens by the new key
		s.newBrowser(t).signIn().want(200, "ada@acme.example")
		if !ada.isSignedIn() || !pkce.isSignedIn() {
			t.Fatalf("a session that was confirmed has ended: %v", s.events(t, "ACCOUNT_CHANGE"))
		}
		ada.logOutAt(p)
		await.Until(t, "the logout of the provider ends the session", func() bool { return !ada.isSignedIn() })
		s.wantEvents(t, "company_logout")

		token := bert.PostJSON(t, s.Service, "/admin/v1/me/tokens", object{"name": "ci", "scopes": []string{"registry:read"}})
		var made struct{ Token string }
		token.WantStatus(t, 201).Decode(t, &made)
		me := func() int {
			return apiclient.Call(t, "GET", s.API+"/admin/v1/me", nil, "Authorization", "Bearer "+made.Token).Status
		}
		if got := me(); got != 200 {
			t.Fatalf("the personal token has status %d", got)
		}
		p.remove("u2")
		s.makeDue(t)
		await.Until(t, "the session of a leaver ends", func() bool { return !pkce.isSignedIn() })
		await.Until(t, "the token of a leaver ends", func() bool { return me() == 401 })
		s.wantEvents(t, "company_left")
	})
}

// TestRealUnaskedRefreshToken is TestUnaskedRefreshToken at a real provider, which gives a refresh token
// to every client that may use one. The session goes on without it when the person is removed there.
func TestRealUnaskedRefreshToken(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := &site{e: e, Service: e.Start(t, append(fixture.RegistrySettings(), fixture.RiskPolicy("relaxed"))...)}
		s.operator = e.NewWriter(t, s.Service, "olga@example.com", "operate *")
		p := startReal(t, s.Service, false)
		settings := p.settings("tollgate", "acme.example")
		settings["scopes"] = []string{"openid", "profile", "email"}
		s.want(t, 201, "PUT", providers+"/acme", settings)
		p.signIn("u1", "ada@acme.example", nil)
		ada := s.newBrowser(t).signIn().want(200, "ada@acme.example")
		p.remove("u1")
		s.wantNoRefreshToken(t)
		if !ada.isSignedIn() {
			t.Error("the session has ended")
		}
	})
}

func wantGrants(t *testing.T, s *site, email string, want ...string) {
	t.Helper()
	if got := s.grants(t, email); strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("%s has the grants %v, want %v", email, got, want)
	}
}

// wantLevel checks the trust level of the last sign-in.
func (s *site) wantLevel(t *testing.T, want string) {
	t.Helper()
	if got := s.events(t, "LOGIN_ATTEMPT")[0]["trustLevel"]; got != want {
		t.Errorf("the level is %v, want %s", got, want)
	}
}

var formField = regexp.MustCompile(`action="([^"]+)"[^>]*>.*name="xsrf" value="([^"]+)"`)

// logOutAt signs out at the provider by its page.
func (b *browser) logOutAt(p *realProvider) {
	b.t.Helper()
	b.open(p.Issuer + "/session/end")
	form := formField.FindStringSubmatch(b.body)
	if form == nil {
		b.t.Fatalf("the provider shows no form: %s", b.body)
	}
	b.postTo(form[1], url.Values{"xsrf": {form[2]}, "logout": {"yes"}}).want(200)
}
