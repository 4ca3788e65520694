package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

const approve = "Sign in the command"

// TestCommandRequests checks which requests the page refuses, and who may approve one.
func TestCommandRequests(t *testing.T) {
	e, s := start(t, "AUTH_RATE_LIMIT=20", fixture.RiskPolicy("relaxed"))
	b := newBrowser(t, s)
	b.SignIn(e.NewPerson(t, "ada@example.com").Email, fixture.Password)
	for name, address := range map[string]string{
		"a name":            webtest.CommandRequest("redirect_uri", "http://localhost:1/callback"),
		"another machine":   webtest.CommandRequest("redirect_uri", "http://192.0.2.1:1/callback"),
		"a name like it":    webtest.CommandRequest("redirect_uri", "http://127.0.0.1.example.com:1/"),
		"with a user":       webtest.CommandRequest("redirect_uri", "http://127.0.0.1:1@example.com/"),
		"with a backslash":  webtest.CommandRequest("redirect_uri", `http://example.com\@127.0.0.1:1/`),
		"without a port":    webtest.CommandRequest("redirect_uri", "http://127.0.0.1/callback"),
		"the port 0":        webtest.CommandRequest("redirect_uri", "http://127.0.0.1:0/callback"),
		"https":             webtest.CommandRequest("redirect_uri", "https://127.0.0.1:1/callback"),
		"a scheme":          webtest.CommandRequest("redirect_uri", "javascript:alert(1)"),
		"with a query":      webtest.CommandRequest("redirect_uri", "http://127.0.0.1:1/callback?x=y"),
		"with a fragment":   webtest.CommandRequest("redirect_uri", "http://127.0.0.1:1/callback#x"),
		"long":              webtest.CommandRequest("redirect_uri", "http://127.0.0.1:1/"+strings.Repeat("x", 100)),
		"a plain challenge": webtest.CommandRequest("code_challenge_method", "plain"),
		"no method":         webtest.CommandRequest("code_challenge_method", ""),
		"no challenge":      webtest.CommandRequest("code_challenge", ""),
		"a long challenge":  webtest.CommandRequest("code_challenge", strings.Repeat("x", 44)),
		"no state":          webtest.CommandRequest("state", ""),
		"markup in state":   webtest.CommandRequest("state", "<script>"),
	} {
		if b.Open(address, http.StatusBadRequest); b.Page.Status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, b.Page.Status)
		}
	}
	b.Open(webtest.CommandRequest("redirect_uri", "http://[::1]:1/callback"), http.StatusOK)
	b.Open(webtest.CommandRequest("redirect_uri", "http://127.0.0.1:1"), http.StatusOK)

	b.Open(webtest.CommandRequest(), http.StatusOK)
	foreign := b.Submission(approve)
	foreign.Header.Set("Sec-Fetch-Site", "cross-site")
	foreign.Header.Set("Origin", "https://evil.example")
	b.Send(foreign, http.StatusForbidden)
	b.Open(webtest.CommandRequest(), http.StatusOK)
	if q := b.Redirected(b.Submission("Refuse")); q.Get("error") != "access_denied" || q.Get("state") != "some-state" || q.Has("code") {
		t.Errorf("refused, the command gets %v", q)
	}
	changed := b.Submission(approve, "redirect_uri", "http://192.0.2.1:1/callback")
	b.Send(changed, http.StatusUnprocessableEntity)

	b.Open(webtest.CommandRequest(), http.StatusOK)
	late := b.Submission(approve)
	b.Press("Sign out", http.StatusOK)
	b.Send(late, http.StatusOK).WantText("Sign in", "Your session has ended")

	b.SignIn("ada@example.com", fixture.Password)
	b.Open(webtest.CommandRequest(), http.StatusOK)
	for range 20 {
		b.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		response, err := b.Client.Do(b.Submission(approve))
		must.Succeed(t, err)
		_ = response.Body.Close()
		if response.StatusCode == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("codes are not limited")
}
