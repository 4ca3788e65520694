package people

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
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

// inSite runs a test in a service with an operator.
func inSite(t *testing.T, test func(t *testing.T, s *site), settings ...string) {
	t.Helper()
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.Environ = append(e.Environ, settings...)
		test(t, startSite(t, e))
	})
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
type browser struct{ *webtest.Browser }

func (s *site) newBrowser(t *testing.T) browser {
	t.Helper()
	return browser{webtest.New(t, s.API)}
}

// open opens the page of a link, and returns the status.
func (b browser) open(t *testing.T, link string) int {
	t.Helper()
	return b.Try(b.Request("GET", path(t, link), nil, ""))
}

// submit submits the form of the page of a link, and returns the status of the page it leads to.
func (b browser) submit(t *testing.T, link string, fields ...string) int {
	t.Helper()
	u, err := url.Parse(link)
	must.Succeed(t, err)
	form := url.Values{"code": {u.Query().Get("code")}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.Try(b.Form(u.Path, form))
}

func path(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	must.Succeed(t, err)
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

// device is the device from which all people sign in by API.
var device = map[string]string{
	"userAgent": "Mozilla/5.0 Firefox/140.0", "screenResolution": "1920x1080", "timezone": "Europe/Berlin",
	"language": "de-DE",
}

// login tries to sign in.
func (s *site) login(t *testing.T, email, password string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, "POST", s.API+"/auth/login",
		object{"email": email, "password": password, "deviceInfo": device})
}

// startLogin signs in as far as the second factor, and returns the id of the person.
func (s *site) startLogin(t *testing.T, email, password string) string {
	t.Helper()
	var got struct {
		RequiresMFA bool
		UserID      string
	}
	a := s.login(t, email, password).WantStatus(t, http.StatusOK)
	if a.Decode(t, &got); !got.RequiresMFA || got.UserID == "" {
		t.Fatalf("the sign-in wants no second factor: %s", a.Body)
	}
	return got.UserID
}

// verify sends the code of a second factor after startLogin.
func (s *site) verify(t *testing.T, id, code string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, "POST", s.API+"/auth/mfa/verify",
		object{"userId": id, "mfaCode": code, "deviceInfo": device})
}

// loginWithCode signs in with a second factor, and returns the header with the access token.
func (s *site) loginWithCode(t *testing.T, email, password, code string) []string {
	t.Helper()
	var got struct{ AccessToken string }
	s.verify(t, s.startLogin(t, email, password), code).WantStatus(t, http.StatusOK).Decode(t, &got)
	return []string{"Authorization", "Bearer " + got.AccessToken}
}

// invite invites a person, and returns the id and the link.
func (s *site) invite(t *testing.T, email string, grants ...object) (id, link string) {
	t.Helper()
	made := s.want(t, http.StatusCreated, "POST", people, object{"email": email, "name": "A Person", "grants": append([]object{}, grants...)})
	invitation, _ := made["invitation"].(object)
	id, _ = made["id"].(string)
	link, _ = invitation["url"].(string)
	return id, link
}

// add adds a person by command, and returns the id.
func (s *site) add(t *testing.T, email string, grants ...string) string {
	t.Helper()
	s.e.NewPerson(t, email, grants...)
	found, _ := s.want(t, http.StatusOK, "GET", people+"?q="+url.QueryEscape(email), nil)["people"].([]any)
	if len(found) != 1 {
		t.Fatalf("%d people have the address %s", len(found), email)
	}
	id, _ := found[0].(object)["id"].(string)
	return id
}

// makeResetLink makes a link to set another password, as an operator.
func (s *site) makeResetLink(t *testing.T, id string) string {
	t.Helper()
	link, _ := s.want(t, http.StatusOK, "POST", people+"/"+id+"/reset-link", nil)["url"].(string)
	return link
}

// forgot requests a link to set another password.
func (s *site) forgot(t *testing.T, email string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, "POST", s.API+"/auth/password/forgot", object{"email": email}).WantStatus(t, http.StatusOK)
}

// reset sets the password by a link.
func (s *site) reset(t *testing.T, link, password string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, "POST", s.API+"/auth/password/reset", object{"token": codeOf(link), "newPassword": password})
}

// codeOf returns the secret of a link.
func codeOf(link string) string {
	_, code, _ := strings.Cut(link, "code=")
	return code
}

// wantDead checks that a link is dead: its page, and its form.
func (s *site) wantDead(t *testing.T, what, link string) {
	t.Helper()
	b := s.newBrowser(t)
	form := b.submit(t, link, "email", "eve@example.com", "name", "Eve", "password", newPassword, "newPassword", newPassword)
	if page := b.open(t, link); page != http.StatusNotFound || form != http.StatusNotFound {
		t.Errorf("%s: the page answers %d and the form %d", what, page, form)
	}
}

// wantGood checks that the page of a link opens.
func (s *site) wantGood(t *testing.T, what, link string) {
	t.Helper()
	if page := s.newBrowser(t).open(t, link); page != http.StatusOK {
		t.Errorf("%s: the page answers %d", what, page)
	}
}

// signIn signs in to the console, with the code of a second factor if the person has one.
func (b browser) signIn(t *testing.T, email, password string, userAndCode ...string) {
	t.Helper()
	status := b.submit(t, "/console/sign-in", "email", email, "password", password)
	if len(userAndCode) > 0 && status == http.StatusOK {
		b.wantSession(t, false)
		status = b.submit(t, "/console/sign-in/code", "user", userAndCode[0], "code", userAndCode[1])
	}
	if status != http.StatusOK {
		t.Fatalf("the sign-in answers %d", status)
	}
	b.wantSession(t, true)
}

// wantSession checks whether the browser is signed in.
func (b browser) wantSession(t *testing.T, signedIn bool) {
	t.Helper()
	b.open(t, "/console/account")
	if got := b.Page.URL.Path == "/console/account"; got != signedIn {
		t.Errorf("the browser is signed in: %t, at %s", got, b.Page.URL)
	}
}
