package statuses

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
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
	must.Succeed(b.s.t, err)
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
	must.Succeed(b.s.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must.Succeed(b.s.t, err)
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

var (
	titleElement = regexp.MustCompile(`(?s)<title>(.*?)</title>`)
	mistakes     = regexp.MustCompile(`<li><a href="#[^"]*"[^>]*>([^<]*)</a>`)
	// messageElement is the text of a page that says why there is no other page.
	messageElement = regexp.MustCompile(`<h1>(?:Not|Something|Too)[^<]*</h1>(?: ?<a class="help"[^>]*>.*?</a>)?\s*<p[^>]*>([^<]*)</p>`)
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
	for _, page := range readRequests(t, "pages.txt") {
		path := page.path
		if strings.Contains(path, "{review}") {
			path = strings.ReplaceAll(path, "{review}", s.submit())
		}
		got := answers{request: "GET " + stable(path)}
		for _, b := range all {
			got.add(b.name, describePage(b.send(path, nil)))
		}
		lines = append(lines, got.lines()...)
	}
	for _, f := range readRequests(t, "forms.txt") {
		got := make([]answers, len(f.variants)+1)
		for i, b := range all {
			n := fmt.Sprint(i)
			path := s.prepare(f, n)
			add := func(variant int, name string, p page) {
				got[variant].request = "POST " + f.path + " | " + name
				got[variant].add(b.name, describePage(p))
			}
			for v, variant := range f.variants {
				add(v, fmt.Sprint(v), b.send(path, readFields(t, variant.name, n)))
			}
			add(len(f.variants), "another site", b.send(path, url.Values{}, "Origin", "https://evil.example"))
		}
		lines = append(lines, allLines(got)...)
	}
	return lines
}

// readFields returns the fields of a form. A document is named as in the other requests.
func readFields(t *testing.T, query, n string) url.Values {
	t.Helper()
	if query == "-" {
		return url.Values{}
	}
	fields, err := url.ParseQuery(strings.ReplaceAll(query, "{n}", n))
	must.Succeed(t, err)
	if text := fields.Get("document"); strings.HasPrefix(text, "document ") {
		fields.Set("document", readBody(t, text, n).(string))
	}
	return fields
}
