package statuses

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// browser is a browser that keeps cookies and follows no redirects.
type browser struct {
	s       *site
	name    string
	cookies map[string]string
}

// page is what a browser got.
type page struct {
	status         int
	location, body string
}

// send sends a form, or opens a page if the form is nil.
func (b *browser) send(path string, form url.Values, header ...string) page {
	b.s.t.Helper()
	base := strings.Replace(b.s.API, "127.0.0.1", "localhost", 1)
	method, content := http.MethodGet, ""
	if form != nil {
		method, content = http.MethodPost, form.Encode()
	}
	r, err := http.NewRequestWithContext(b.s.t.Context(), method, base+path, strings.NewReader(content))
	if err != nil {
		b.s.t.Fatal(err)
	}
	r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	r.Header.Set("Origin", base)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.s.t.Fatal(err)
	}
	for _, c := range response.Cookies() {
		b.cookies[c.Name] = c.Value
	}
	return page{response.StatusCode, response.Header.Get("Location"), string(body)}
}

// signIn signs a person in.
func (b *browser) signIn(email, password string) {
	b.s.t.Helper()
	b.send("/console/sign-in", url.Values{"email": {email}, "password": {password}})
}

var challengeField = regexp.MustCompile(`name="step-up.challenge" value="([^"]+)"`)

// stepUp passes a step-up.
func (b *browser) stepUp(email string) {
	b.s.t.Helper()
	sent := challengeField.FindStringSubmatch(b.send("/console/step-up/send", url.Values{
		"step-up.method": {"EMAIL_OTP"},
	}).body)
	if sent == nil {
		b.s.t.Fatalf("%s gets no code", email)
	}
	b.send("/console/step-up/verify", url.Values{
		"step-up.challenge": {sent[1]}, "step-up.code": {b.s.e.LastCode(b.s.t, email)},
	})
}

// newBrowsers returns a browser of each kind of visitor. Their people are not those of the API, so
// that the sign-ins of one do not change the trust of the other.
func (s *site) newBrowsers() []*browser {
	open := func(name string, cookies map[string]string) *browser { return &browser{s, name, cookies} }
	all := []*browser{open("no cookie", map[string]string{}), open("bad cookie", map[string]string{"tollgate": "x"})}
	signedIn := func(name, email string, granted ...string) *browser {
		s.e.NewPerson(s.t, email, granted...)
		b := open(name, map[string]string{})
		b.signIn(email, fixture.Password)
		all = append(all, b)
		return b
	}
	high := signedIn("HIGH_RISK", "web-high@example.com", grants()...)
	high.signIn("web-high@example.com", fixture.Password)
	high.signIn("web-high@example.com", "wrong")
	high.signIn("web-high@example.com", fixture.Password)
	signedIn("UNVERIFIED", "web-unverified@example.com", grants()...)
	limited := signedIn("LIMITED_TRUST", "web-limited@example.com", grants()...)
	limited.stepUp("web-limited@example.com")
	clear(limited.cookies)
	limited.signIn("web-limited@example.com", fixture.Password)
	signedIn("FULL_TRUST", "web-full@example.com", grants()...).stepUp("web-full@example.com")
	signedIn("no grant", "web-nobody@example.com").stepUp("web-nobody@example.com")
	signedIn("operator", "web-operator@example.com", "operate *").stepUp("web-operator@example.com")
	signedIn("operator below FULL_TRUST", "web-operator2@example.com", "operate *")
	s.checkLevels(all)
	return all
}

// checkLevels checks that the sessions have the trust levels of their names.
func (s *site) checkLevels(all []*browser) {
	s.t.Helper()
	for i, means := range []string{
		2: "It may only sign out", 3: "little else, until", 4: "does not change the registry, until",
		5: "everything that you may do",
	} {
		if means == "" || i == 2 {
			continue
		}
		if shown := all[i].send("/console/account", nil); !strings.Contains(shown.body, means) {
			s.t.Fatalf("the session %s is not what its name says: %d %s", all[i].name, shown.status, shown.body)
		}
	}
	if shown := all[2].send("/console/account", nil); shown.status != http.StatusForbidden {
		s.t.Fatalf("the session HIGH_RISK sees its account: %d", shown.status)
	}
}

// form is a form that each visitor sends in each variant. "{n}" in it is a number of the visitor.
type form struct {
	path    string
	fields  []string              // each variant as a query
	prepare func(n string) string // makes what the form is for and returns what replaces "{id}"; optional
}

// forms are the forms of the console that change something. The last one ends the session.
func (s *site) forms() []form {
	const unknown = "/" + unknownID + "/"
	const operator = "/console/operator"
	document := func(name string) string {
		encoded, err := json.Marshal(fixture.NewServerDocument(namespace+name, "1.0.0"))
		if err != nil {
			s.t.Fatal(err)
		}
		return "document=" + url.QueryEscape(string(encoded))
	}
	named := "name=" + url.QueryEscape(namespace)
	return []form{
		{
			"/console/publish", []string{
				"", "document=x", document("open-webNUMBER") + "&act=check", document("open-webNUMBER"),
				document("wait-webNUMBER"),
			}, nil,
		},
		{
			"/console/own/example.statuses/open-v{n}/status", []string{
				"status=x&version=*&sure=yes", "status=deprecated&version=9.0.0", "status=deprecated&version=1.0.0", "status=active&version=*&sure=yes",
			}, func(n string) string { return s.publish("open-v"+n, "1.0.0") },
		},
		{
			"/console/request", []string{
				"", "serverName=x&reason=x", "serverName=com.example/x&reason=x",
			}, nil,
		},
		{
			"/console/own/trusted/add/github", []string{
				"", "claims.repository=acme/x{n}&pattern=com.other/*", "claims.repository=acme/x{n}&pattern=" + url.QueryEscape(namespace) + "x{n}",
			}, nil,
		},
		{"/console/own/trusted/add/none", []string{""}, nil},
		{"/console/own/trusted" + unknown + "remove", []string{""}, nil},
		{
			"/console/reviews/{id}/decide", []string{
				"", "decision=reject", "decision=reject&comment=x", "decision=approve",
			}, func(string) string { return s.submit() },
		},
		{"/console/reviews/{id}/decide", []string{"decision=approve"}, func(string) string { return s.submit() }},
		{"/console/reviews/" + unknownID + "/decide", []string{"decision=approve"}, nil},
		{
			"/console/quarantine", []string{
				named + "open-w{n}", named + "none&reason=x", "name=no+name&reason=x", named + "open-w{n}&reason=x",
				named + "open-w{n}&reason=x",
			}, func(n string) string { return s.publish("open-w"+n, "1.0.0") },
		},
		{
			"/console/quarantine/release", []string{"", named + "none", named + "open-u{n}", named + "open-u{n}"},
			func(n string) string { s.hide("open-u" + n); return "" },
		},
		{"/console/account/sessions" + unknown + "end", []string{""}, nil}, {
			"/console/account/sessions/x/end", []string{""}, nil,
		},
		{"/console/account/devices" + unknown + "revoke", []string{""}, nil}, {
			"/console/account/devices" + unknown + "trust", []string{""}, nil,
		},
		{"/console/account/devices" + unknown + "name", []string{"", "name=Laptop"}, nil},
		{"/console/account/password", []string{"", "currentPassword=wrong-wrong-wrong-7&newPassword=x"}, nil},
		{"/console/account/authenticator", []string{""}, nil}, {
			"/console/account/authenticator/activate", []string{"", "code=123"}, nil,
		},
		{"/console/account/authenticator/disable", []string{"", "code=123"}, nil},
		{"/console/account/authenticator/another", []string{"", "name=x&code-another=123"}, nil}, {
			"/console/account/authenticator/another/activate", []string{"", "secret=x&code=123"}, nil,
		},
		{"/console/account/authenticator/remove", []string{"", "app=x&code-remove=123"}, nil}, {
			"/console/account/authenticator/codes", []string{"", "code-codes=123"}, nil,
		},
		{
			operator + "/grants", []string{
				"", "email=x", "email=tom%40example.com&action=publish&resource=x+y",
				"email=tom%40example.com&action=publish&resource=com.example/n{n}",
			}, nil,
		},
		{
			operator + "/grants/remove", []string{
				"", "email=tom%40example.com&action=publish&resource=com.example/n{n}",
			}, nil,
		},
		{operator + "/policies/{id}/remove", []string{"", ""}, func(n string) string { return addPolicy(s, n) }},
		{
			operator + "/views", []string{
				"", "name=v{n}&include=x+y&deprecated=show&access=public", "name=v{n}&deprecated=show&access=public",
				"name=v{n}&deprecated=show&access=public",
			}, nil,
		},
		{operator + "/views/v{n}/remove", []string{"", ""}, nil},
		{operator + "/webhooks" + unknown + "redeliver", []string{""}, nil}, {
			operator + "/webhooks" + unknown + "remove", []string{""}, nil,
		},
		{"/console/account/tokens", []string{"", "name=x&scopes=y"}, nil},
		{"/console/account/tokens" + unknown + "remove", []string{""}, nil},
		{operator + "/service-accounts", []string{"", "name=S"}, nil},
		{operator + "/service-accounts/x{n}", []string{"state=active"}, nil},
		{operator + "/service-accounts/x{n}/remove", []string{""}, nil},
		{operator + "/service-accounts/x{n}/grants", []string{"action=publish&resource=*"}, nil},
		{operator + "/service-accounts/x{n}/workloads", []string{"issuer=x&subject=x"}, nil},
		{operator + "/service-accounts/x{n}/workloads/0/remove", []string{""}, nil},
		{operator + "/service-accounts/x{n}/tokens", []string{"", "name=x&scopes=registry:read"}, nil},
		{operator + "/service-accounts/x{n}/tokens" + unknown + "remove", []string{""}, nil},
		{operator + "/policies", []string{"", "method=dns&pattern=com.example/*"}, nil},
		{operator + "/views/x{n}", []string{"access=public"}, nil},
		{operator + "/views/x{n}/tokens", []string{"", "token=a"}, nil},
		{operator + "/views/x{n}/tokens/a/remove", []string{""}, nil},
		{operator + "/mirrors", []string{"", "name=m{n}&url=https://registry.invalid&interval=x"}, nil},
		{operator + "/mirrors/x{n}", []string{"url=https://registry.invalid"}, nil},
		{operator + "/mirrors/x{n}/sync", []string{""}, nil}, {operator + "/mirrors/x{n}/remove", []string{""}, nil},
		{operator + "/webhooks", []string{"", "url=http://hooks.example.com"}, nil},
		{operator + "/webhooks/" + unknownID, []string{""}, nil},
		{operator + "/webhooks" + unknown + "test", []string{""}, nil},
		{
			operator + "/access", []string{
				"", "name=a{n}&order=1&effect=allow&subjects=x&servers=*", "name=a{n}&order=1&effect=allow&subjects=everyone&servers=*",
				"name=a{n}&order=1&effect=allow&subjects=everyone&servers=*",
			}, nil,
		},
		{operator + "/access/rules/a{n}", []string{"", "order=1&effect=allow&subjects=everyone&servers=*"}, nil},
		{operator + "/access/rules/a{n}/remove", []string{"", ""}, nil},
		{operator + "/review-rules", []string{"", "resource=x+y&when=any"}, nil},
		{operator + "/review-rules" + unknown + "remove", []string{""}, nil},
		{"/console/reviews", []string{"", "decision=reject&ids=" + unknownID, "decision=approve&ids=" + unknownID}, nil},
		{operator + "/people/tom@example.com/lock", []string{""}, nil}, {
			operator + "/people/tom@example.com/unlock", []string{""}, nil,
		},
		{operator + "/people/tom@example.com/disable", []string{""}, nil}, {
			operator + "/people/tom@example.com/enable", []string{""}, nil,
		},
		{operator + "/people/tom@example.com/end-sessions", []string{""}, nil}, {
			operator + "/people/none@example.com/lock", []string{""}, nil,
		},
		{"/console/sign-in", []string{"", "email=x&password=x", "email=none%40example.com&password=wrong"}, nil},
		{"/console/sign-in/code", []string{"", "user=" + unknownID + "&code=123456"}, nil},
		{"/console/step-up/send", []string{"", "step-up.method=x"}, nil}, {
			"/console/step-up/verify", []string{"", "step-up.challenge=" + unknownID + "&step-up.code=1"}, nil,
		},
		{"/console/sign-out", []string{""}, nil},
	}
}

// pages are those that not everybody may see.
func (s *site) pages() []string {
	operator := []string{
		"", "/people", "/people/tom@example.com", "/grants", "/policies", "/views", "/mirrors", "/webhooks", "/limits",
		"/risk", "/log", "/review-rules", "/service-accounts", "/service-accounts/none", "/views/none", "/mirrors/none", "/webhooks/" + unknownID,
		"/access", "/access/explain", "/access/explain?server=x&method=tools/list&subject=x", "/access?server=x", "/access?subject=none%40example.com", "/access/rules/none",
	}
	all := []string{
		"/console/", "/console/publish", "/console/own", "/console/own/example.statuses/open-s3",
		"/console/servers/example.statuses/open-s3",
		"/console/reviews", "/console/reviews?state=x", "/console/reviews/" + unknownID,
		"/console/reviews/" + s.submit(), "/console/quarantine", "/console/quarantine?cursor=x",
		"/console/account", "/console/account/password", "/console/account/authenticator", "/console/account/log", "/console/account/tokens", "/console/account/access",
		"/console/none",
	}
	for _, page := range operator {
		all = append(all, "/console/operator"+page)
	}
	return append(all, "/console/connect", "/console/connect?view=none", "/console/request", "/console/own/trusted",
		"/console/own/trusted/add/github", "/console/own/trusted/add/none")
}

var (
	titleElement = regexp.MustCompile(`(?s)<title>(.*?)</title>`)
	mistakes     = regexp.MustCompile(`<li><a href="#[^"]*"[^>]*>([^<]*)</a>`)
	// messageElement is the text of a page that says why there is no other page.
	messageElement = regexp.MustCompile(`<h1>(?:Not|Something|Too)[^<]*</h1>\s*<p[^>]*>([^<]*)</p>`)
)

// describePage returns what a visitor got, on one line.
func describePage(p page) string {
	text := p.location
	if title := titleElement.FindStringSubmatch(p.body); title != nil {
		text += title[1]
	}
	for _, m := range mistakes.FindAllStringSubmatch(p.body, -1) {
		text += "; " + m[1]
	}
	if message := messageElement.FindStringSubmatch(p.body); message != nil {
		text += ": " + message[1]
	}
	return fmt.Sprintf("%d %s", p.status, stable(html.UnescapeString(text)))
}

// sendForms opens all pages and sends all forms, and returns a line for each answer.
func (s *site) sendForms(t *testing.T) (lines []string) {
	t.Helper()
	all := s.newBrowsers()
	for _, path := range s.pages() {
		got := answers{request: "GET " + stable(path)}
		for _, b := range all {
			got.add(b.name, describePage(b.send(path, nil)))
		}
		lines = append(lines, got.lines()...)
	}
	for _, f := range s.forms() {
		got := make([]answers, len(f.fields)+1)
		for i, b := range all {
			n, path := fmt.Sprint(i), f.path
			if f.prepare != nil {
				path = strings.ReplaceAll(path, "{id}", f.prepare(n))
			}
			path = strings.ReplaceAll(path, "{n}", n)
			add := func(variant int, name string, p page) {
				got[variant].request = "POST " + f.path + " | " + name
				got[variant].add(b.name, describePage(p))
			}
			for v, query := range f.fields {
				fields, err := url.ParseQuery(strings.NewReplacer("{n}", n, "NUMBER", n).Replace(query))
				if err != nil {
					t.Fatal(err)
				}
				add(v, fmt.Sprint(v), b.send(path, fields))
			}
			add(len(f.fields), "another site", b.send(path, url.Values{}, "Origin", "https://evil.example"))
		}
		lines = append(lines, allLines(got)...)
	}
	return lines
}
