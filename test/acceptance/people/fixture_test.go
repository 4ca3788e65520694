package people

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/apiclient"
	"github.com/tollgate-dev/tollgate/test/acceptance/internal/fixture"
	"github.com/tollgate-dev/tollgate/test/await"
)

const (
	people      = "/admin/v1/people"
	newPassword = "Another-Horse-8-Battery"
)

type object = map[string]any

// site is a service with an operator.
type site struct {
	*fixture.Service
	e        *fixture.Environment
	operator *fixture.Person
	notices  string // the file in which links are
}

func startEmpty(t *testing.T, e *fixture.Environment) *site {
	t.Helper()
	s := &site{e: e, notices: filepath.Join(e.Dir, "notices.jsonl")}
	s.Service = e.Start(t, append(fixture.RegistrySettings(), "NOTICE_LOG_FILE="+s.notices, "OTP_EMAIL_PLUGIN=otp-log")...)
	return s
}

func startSite(t *testing.T, e *fixture.Environment) *site {
	t.Helper()
	s := startEmpty(t, e)
	s.operator = e.NewWriter(t, s.Service, "olga@example.com", "operate *")
	return s
}

// want sends a request of the operator, and returns the answer, which has a status.
func (s *site) want(t *testing.T, status int, method, path string, body any, header ...string) object {
	t.Helper()
	a := apiclient.Call(t, method, s.API+path, body, append(s.operator.Bearer(), header...)...)
	var got object
	a.WantStatus(t, status)
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

// browser is a browser of one person.
type browser struct {
	client *http.Client
	api    string
}

func (s *site) newBrowser(t *testing.T) browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return browser{&http.Client{Jar: jar}, s.API}
}

// open opens the page of a link, and returns the status.
func (b browser) open(t *testing.T, link string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", b.api+path(t, link), nil)
	if err != nil {
		t.Fatal(err)
	}
	return b.send(t, r)
}

// submit submits the form of the page of a link, and returns the status of the page it leads to.
func (b browser) submit(t *testing.T, link string, fields ...string) int {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"code": {u.Query().Get("code")}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", b.api+u.Path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.send(t, r)
}

func (b browser) send(t *testing.T, r *http.Request) int {
	t.Helper()
	response, err := b.client.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	_ = response.Body.Close() // nothing of it is needed
	return response.StatusCode
}

func path(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return u.RequestURI()
}

// links returns the links that were sent to an address.
func (s *site) links(t *testing.T, email string) []string {
	t.Helper()
	content, err := os.ReadFile(s.notices)
	if err != nil {
		return nil
	}
	var list []string
	for line := range bytes.Lines(content) {
		var entry struct{ Recipient, Link string }
		if json.Unmarshal(line, &entry) == nil && entry.Recipient == email && entry.Link != "" {
			list = append(list, entry.Link)
		}
	}
	return list
}

// awaitLink waits for the n-th link to an address.
func (s *site) awaitLink(t *testing.T, email string, n int) string {
	t.Helper()
	await.Until(t, "a link to "+email, func() bool { return len(s.links(t, email)) >= n })
	return s.links(t, email)[n-1]
}

// login tries to sign in.
func (s *site) login(t *testing.T, email, password string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, "POST", s.API+"/auth/login", object{"email": email, "password": password, "deviceInfo": object{
		"userAgent": "Mozilla/5.0 Firefox/140.0", "screenResolution": "1920x1080", "timezone": "Europe/Berlin",
		"language": "de-DE",
	}})
}
