package people

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"html"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// canarySite is a site with one secret of every kind, by what it is.
type canarySite struct {
	*site
	browser browser // of the operator
	secrets map[string]string
	ids     *strings.Replacer // fills the parameters of a path
}

// TestCanaries makes a secret of every kind over the wire, and checks that it is in the answer
// that made it and nowhere else: not in what an operator reads by API, command or page, not in
// answers of refused requests, the log, the metrics or the debug pages.
func TestCanaries(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.Environ = append(append(e.Environ, fixture.RelaxedRiskSettings...), "OAUTH=on", "PUBLIC_URL=https://tools.example.com")
		s := &canarySite{site: startEmpty(t, e), secrets: map[string]string{"password": fixture.Password}}
		s.makeOperator(t)
		s.makeObjects(t)
		s.makeLinks(t)
		s.checkAPI(t)
		s.checkRefused(t)
		s.checkPages(t)
		s.wantNoCanary(t, "export-state", e.RunCommand(t, "", "export-state"))
		s.wantNoCanary(t, "the log", s.Process.Log())
	})
}

// keep notes a secret.
func (s *canarySite) keep(t *testing.T, what, secret string) {
	t.Helper()
	if len(secret) < 11 {
		t.Fatalf("the %s is %q, too short to be sought", what, secret)
	}
	s.secrets[what] = secret
}

// wantNoCanary checks that a text has no secret, nor the end of a long one.
func (s *canarySite) wantNoCanary(t *testing.T, where, text string) {
	t.Helper()
	for what, secret := range s.secrets {
		if at := strings.Index(text, secret[max(0, len(secret)-40):]); at >= 0 {
			t.Errorf("%s has the %s: …%s", where, what, text[max(0, at-100):at])
		}
	}
}

// makeOperator makes the first person with a setup link, signs the person in by API, and adds an
// authenticator.
func (s *canarySite) makeOperator(t *testing.T) {
	t.Helper()
	link := regexp.MustCompile(`http\S+code=\S+`).FindString(s.e.RunCommand(t, "", "setup-link"))
	s.keepLink(t, "code of the setup", link)
	s.browser = s.newBrowser(t)
	form := []string{"email", "olga@example.com", "name", "Olga", "password", fixture.Password}
	if status := s.browser.submit(t, link, form...); status != http.StatusOK {
		t.Fatalf("the setup answers %d", status)
	}
	for _, cookie := range s.browser.Client.Jar.Cookies(s.browser.Page.URL) {
		s.keep(t, "cookie "+cookie.Name, cookie.Value)
	}
	s.operator = &fixture.Person{Email: "olga@example.com", Device: map[string]string{
		"userAgent": "Mozilla/5.0 Firefox/140.0", "screenResolution": "1920x1080", "timezone": "Europe/Berlin",
		"language": "de-DE",
	}}
	s.operator.Login(t, s.Service)
	s.operator.StepUp(t, s.e, s.Service)
	s.keep(t, "access token", s.operator.AccessToken)
	s.keep(t, "refresh token", s.operator.RefreshToken)
	s.keep(t, "device token", s.operator.DeviceToken)
	app := s.e.EnrolAuthenticator(t, s.operator)
	s.keep(t, "TOTP secret", app.Secret(t))
	s.keep(t, "recovery code", app.Recovery[0])
}

// keepLink notes the code of a link.
func (s *canarySite) keepLink(t *testing.T, what, link string) {
	t.Helper()
	_, code, _ := strings.Cut(link, "code=")
	s.keep(t, what, code)
}

// makeObjects makes an object of every kind, with its secrets.
func (s *canarySite) makeObjects(t *testing.T) {
	t.Helper()
	const admin = "/admin/v1"
	made := func(method, path string, body object) object { return s.want(t, 201, method, admin+path, body) }
	text := func(o object, name string) string { value, _ := o[name].(string); return value }
	token := object{"name": "canary", "scopes": []string{"registry:read"}}
	made("PUT", "/views/canary", object{"access": "token"})
	s.keep(t, "view token", text(made("POST", "/views/canary/tokens", object{"name": "ci"}), "token"))
	made("PUT", "/service-accounts/canary", object{"description": "builds"})
	s.keep(t, "token of a service account", text(made("POST", "/service-accounts/canary/tokens", token), "token"))
	s.keep(t, "personal token", text(made("POST", "/me/tokens", token), "token"))
	s.keep(t, "token of a mirror", "tgview_canary-0123456789-of-the-mirror")
	made("PUT", "/mirrors/canary", object{"url": "http://127.0.0.1:1/registries/x/t/" + s.secrets["token of a mirror"]})
	hook := made("POST", "/webhooks", object{"url": "http://127.0.0.1:1/hook", "events": []string{"status", "published"}})
	s.keep(t, "webhook secret", text(hook, "secret"))
	s.want(t, 200, "POST", admin+"/webhooks/"+text(hook, "id")+"/test", nil)
	s.keep(t, "client secret", "canary-0123456789-of-the-provider")
	made("PUT", "/providers/canary", object{
		"displayName": "Canary", "issuer": "https://127.0.0.1:1", "clientId": "canary",
		"clientSecret": s.secrets["client secret"], "domains": []string{"canary.example"},
	})
	s.want(t, 200, "POST", admin+"/providers/canary/test", nil)
	policy := made("POST", "/policies", object{"method": "dns", "domain": "example.com", "pattern": "com.example/*"})
	made("PUT", "/access-rules/canary", object{
		"order": 1, "effect": "deny", "subjects": []string{"anyone"}, "servers": []string{"com.example/*"},
	})
	s.keep(t, "secret of a client", text(made("PUT", "/clients/canary", object{
		"name": "Canary", "redirectUris": []string{"https://canary.example/callback"}, "method": "client_secret_basic",
	}), "clientSecret"))
	made("PUT", "/resources/canary", object{"url": "https://canary.example/mcp", "servers": []string{"com.example/canary"}})
	made("PUT", "/collections/canary", object{"sentence": "For tests.", "servers": []string{"com.example/canary"}})
	s.keep(t, "header of a tool source", "canary-0123456789-of-the-tool-source")
	made("PUT", "/tool-sources/canary", object{
		"server": "com.example/canary", "remote": "https://canary.example/mcp",
		"headers": object{"Authorization": s.secrets["header of a tool source"]},
	})
	made("POST", "/review-rules", object{"pattern": "com.example/*", "when": "any"})
	s.keep(t, "ID token", "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUifQ.Y2FuYXJ5LW9mLWFuLUlELXRva2Vu")
	_, operator := fixture.ReadSession(t, s.Service, s.operator)
	s.ids = strings.NewReplacer("{name}", "canary", "people/{id}", "people/"+operator,
		"webhooks/{id}", "webhooks/"+text(hook, "id"), "policies/{id}", "policies/"+text(policy, "id"))
}

// makeLinks makes links that are still good at the end.
func (s *canarySite) makeLinks(t *testing.T) {
	t.Helper()
	ada := s.want(t, 201, "POST", people, object{"email": "ada@example.com", "name": "Ada"})
	invitation, _ := ada["invitation"].(object)
	link, _ := invitation["url"].(string)
	s.keepLink(t, "code of the invitation", link)
	_, operator := fixture.ReadSession(t, s.Service, s.operator)
	link, _ = s.want(t, 200, "POST", people+"/"+operator+"/reset-link", nil)["url"].(string)
	s.keepLink(t, "code of the reset", link)
}

// checkAPI reads every path of the description that an operator reads, and what the debug listener
// shows.
func (s *canarySite) checkAPI(t *testing.T) {
	t.Helper()
	var described struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	apiclient.Call(t, "GET", s.API+"/openapi.json", nil).WantStatus(t, 200).Decode(t, &described)
	read := 0
	for path, methods := range described.Paths {
		if methods["get"] == nil || !regexp.MustCompile(`^/(admin|auth|devices|sessions|audit-logs)`).MatchString(path) {
			continue
		}
		filled := s.ids.Replace(path)
		a := apiclient.Call(t, "GET", s.API+filled, nil, s.operator.Bearer()...)
		if a.Status != http.StatusOK && !strings.HasSuffix(path, "/diff") {
			t.Errorf("GET %s: %d %s", filled, a.Status, a.Body)
		}
		s.wantNoCanary(t, "GET "+path, string(a.Body))
		read++
	}
	if read < 30 {
		t.Errorf("only %d paths were read", read)
	}
	stream := append(s.operator.Bearer(), "Accept", "application/x-ndjson")
	s.wantNoCanary(t, "the stream of events", string(
		apiclient.Call(t, "GET", s.API+"/admin/v1/audit", nil, stream...).WantStatus(t, 200).Body))
	for _, path := range []string{"/", "/metrics", "/stats", "/rlconfig", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2"} {
		a := apiclient.Call(t, "GET", s.Debug+path, nil).WantStatus(t, http.StatusOK)
		s.wantNoCanary(t, "the debug page "+path, string(a.Body))
	}
}

// checkRefused sends every secret where it is refused.
func (s *canarySite) checkRefused(t *testing.T) {
	t.Helper()
	const admin = "/admin/v1"
	operator := s.operator.Bearer()
	for what, secret := range s.secrets {
		for _, r := range []struct {
			method, path string
			body         any
			header       []string
		}{
			{"DELETE", admin + "/grants/x", nil, []string{"Authorization", "Bearer " + secret + "x"}},
			{"DELETE", admin + "/views/missing", nil, []string{"Authorization", "Bearer x" + secret}},
			{"GET", "/registries/canary/t/" + secret + "x/v0.1/servers", nil, nil},
			{"POST", "/auth/login", object{"email": "eve@example.com", "password": secret}, nil},
			{"POST", "/auth/refresh", object{"refreshToken": secret + "x"}, nil},
			{"POST", "/auth/password/reset", object{"token": secret + "x", "newPassword": secret}, nil},
			{"POST", "/auth/workload", object{"serviceAccount": "canary", "token": secret}, nil},
			{"PUT", admin + "/providers/canary", object{"issuer": "ftp://x", "clientSecret": secret}, operator},
			{"PUT", admin + "/mirrors/canary", object{
				"url": "http://127.0.0.1:1/registries/x/t/" + secret, "interval": "1s",
			}, operator},
			{"POST", admin + "/apply", object{"kind": "State", "password": secret}, operator},
		} {
			a := apiclient.Call(t, r.method, s.API+r.path, r.body, r.header...)
			if a.Status < 400 || a.Status >= 500 {
				t.Errorf("%s %s with the %s: %d %s", r.method, r.path, what, a.Status, a.Body)
			}
			s.wantNoCanary(t, r.method+" "+r.path, string(a.Body))
		}
	}
}

// checkPages follows every link from the account page and the operator's pages.
func (s *canarySite) checkPages(t *testing.T) {
	t.Helper()
	link := regexp.MustCompile(`href="(/console/[^"#]*)`)
	seen := map[string]bool{}
	for next := []string{"/console/account", "/console/operator"}; len(next) > 0; next = next[1:] {
		path, _, _ := strings.Cut(next[0], "?")
		if seen[path] || strings.HasPrefix(path, "/console/static") {
			continue
		}
		seen[path] = true
		status := s.browser.open(t, next[0])
		page := s.browser.Page.Body
		unreachable := strings.HasSuffix(path, "/diff") || strings.HasPrefix(path, "/console/sign-in/company/")
		if status >= 400 && !unreachable {
			t.Errorf("the page %s answers %d", next[0], status)
		}
		s.wantNoCanary(t, "the page "+next[0], page)
		for _, found := range link.FindAllStringSubmatch(page, -1) {
			next = append(next, html.UnescapeString(found[1]))
		}
	}
	if len(seen) < 20 {
		t.Errorf("only these pages were read: %v", seen)
	}
}
