package tools

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestStolenPassword checks that somebody with the password of a publisher or a reviewer, and without
// the second factor, records nothing.
func TestStolenPassword(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e)
		s.publish(t, "1.0.0")
		for _, grant := range []string{"publish", "review"} {
			thief := e.NewPerson(t, grant+"er@example.com", grant+" com.example/*")
			thief.Login(t, s.Service)
			a := s.call(t, "PUT", toolsPath("1.0.0"), listOf("a"), thief.Bearer()...).WantStatus(t, http.StatusForbidden)
			if challenge := a.Header.Get("WWW-Authenticate"); !strings.HasPrefix(challenge, `Bearer error="insufficient_user_authentication"`) {
				t.Errorf("a person who may %s gets the challenge %q", grant, challenge)
			}
		}
		s.want(t, "1.0.0", "")
		if acts := s.acts(t); len(acts) != 2 || acts[0]["reason"] == nil {
			t.Errorf("the audit log has %v", acts)
		}
	})
}

// TestRoguePublisher checks that a publisher has no way to make a changed list an approved one: not by
// sending it again, nor as somebody else, nor by another order of packages, nor by a new document.
func TestRoguePublisher(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e)
		s.publish(t, "1.0.0")
		send := func(who *fixture.Person, body any) {
			t.Helper()
			s.call(t, "PUT", toolsPath("1.0.0"), body, who.Bearer()...)
		}
		send(s.ada, listOf("harmless"))
		send(s.ada, ofPackage(0, "of one"))
		changed := remote + " approved harmless, " + remote + " changed evil"
		send(s.ada, listOf("evil"))
		send(s.ada, listOf("evil"))
		all := s.want(t, "1.0.0", changed+", 0 approved of one")
		send(s.rita, listOf("evil")) // makes rita no sender, and ada still is
		if again := s.want(t, "1.0.0", changed+", 0 approved of one"); again[1].By != all[1].By || again[1].At != all[1].At {
			t.Errorf("the list that was sent again is %+v", again[1])
		}
		replace := func(packages ...string) {
			t.Helper()
			s.call(t, "PUT", "/v0.1"+fixture.ServerPath(server, "1.0.0"), newDocument("1.0.0", packages...), s.ada.Bearer()...).
				WantStatus(t, http.StatusOK)
		}
		replace("two", "one") // the approved list is that of the same package still
		s.want(t, "1.0.0", changed+", 1 approved of one")
		replace("other")
		s.want(t, "1.0.0", changed)
		replace("one")
		send(s.ada, ofPackage(0, "evil"))
		s.want(t, "1.0.0", changed+", 0 approved of one, 0 changed evil")
		stranger := e.NewWriter(t, s.Service, "eve@example.com", "publish org.example/*", "review org.example/*")
		s.call(t, "PUT", toolsPath("1.0.0"), listOf("harmless"), stranger.Bearer()...).WantStatus(t, http.StatusForbidden)
		s.want(t, "1.0.0", changed+", 0 approved of one, 0 changed evil")
	})
}

// TestNarrowTokens checks tokens for something else: of a person with other scopes, of an owner without
// the grant, and forged ones. Test tokens TestScopes has each scope.
func TestNarrowTokens(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e)
		s.publish(t, "1.0.0")
		newToken := func(who *fixture.Person, scopes ...string) []string {
			t.Helper()
			var made struct{ Token string }
			s.call(t, "POST", "/admin/v1/me/tokens", map[string]any{"name": strings.Join(scopes, " "), "scopes": scopes}, who.Bearer()...).
				WantStatus(t, http.StatusCreated).Decode(t, &made)
			return []string{"Authorization", "Bearer " + made.Token}
		}
		editor := e.NewWriter(t, s.Service, "ed@example.com", "edit com.example/*")
		for what, c := range map[string]struct {
			header []string
			status int
		}{
			"nobody":                               {nil, http.StatusUnauthorized},
			"a forged token":                       {[]string{"Authorization", "Bearer a.b.c"}, http.StatusUnauthorized},
			"a token to read":                      {newToken(s.ada, "registry:read"), http.StatusForbidden},
			"a token to edit":                      {newToken(s.ada, "registry:edit"), http.StatusForbidden},
			"a token to review, of no one who may": {newToken(s.ada, "registry:review"), http.StatusForbidden},
			"a token to publish, likewise":         {newToken(editor, "registry:publish"), http.StatusForbidden},
			"a token to publish":                   {newToken(s.ada, "registry:publish"), http.StatusCreated},
			"a token to review":                    {newToken(s.rita, "registry:review"), http.StatusCreated},
		} {
			body := map[bool]any{true: listOf("a"), false: ofPackage(0, "b")}[what == "a token to publish"]
			if a := s.call(t, "PUT", toolsPath("1.0.0"), body, c.header...); a.Status != c.status {
				t.Errorf("%s: %d %s, want %d", what, a.Status, a.Body, c.status)
			}
		}
		s.want(t, "1.0.0", remote+" approved a, 0 approved b")
	})
}

// TestSharedCache checks that no cache keeps the answer to a write, nor an answer with old lists for
// longer than it keeps the version.
func TestSharedCache(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e, "EDGE_MAX_AGE=1h")
		s.publish(t, "1.0.0")
		a := s.call(t, "PUT", toolsPath("1.0.0"), listOf("a"), s.ada.Bearer()...).WantStatus(t, http.StatusCreated)
		if a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("ETag") != "" {
			t.Errorf("the answer to a write has %v", a.Header)
		}
		version := s.call(t, "GET", "/v0.1"+fixture.ServerPath(server, "1.0.0"), nil)
		read := s.call(t, "GET", toolsPath("1.0.0"), nil)
		for _, name := range []string{"Cache-Control", "Cdn-Cache-Control", "Surrogate-Key", "Cache-Tag", "Vary"} {
			if read.Header.Get(name) == "" || read.Header.Get(name) != version.Header.Get(name) {
				t.Errorf("%s is %q, and of the version %q", name, read.Header.Get(name), version.Header.Get(name))
			}
		}
	})
}

// TestOtherSite checks that a page of another site records nothing with what a browser sends by itself:
// no form, no cookie, and no request for which the browser would ask before.
func TestOtherSite(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e)
		s.publish(t, "1.0.0")
		preflight := s.call(t, "OPTIONS", toolsPath("1.0.0"), nil, "Origin", "https://evil.example", "Access-Control-Request-Method", "PUT")
		if methods := preflight.Header.Get("Access-Control-Allow-Methods"); strings.Contains(methods, "PUT") ||
			preflight.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("a page of another site may: %v", preflight.Header)
		}
		for name, header := range map[string][]string{
			"a cookie":       {"Origin", "https://evil.example", "Cookie", "__Host-tollgate_session=" + s.ada.AccessToken, "Content-Type", "application/json"},
			"a form":         {"Origin", "https://evil.example", "Content-Type", "text/plain"},
			"an upload":      {"Origin", "https://evil.example", "Content-Type", "multipart/form-data; boundary=x"},
			"a token in URL": {"Origin", "https://evil.example", "Content-Type", "application/json", "X-Access-Token", s.ada.AccessToken},
		} {
			a := apiclient.Call(t, "PUT", s.API+toolsPath("1.0.0")+"?access_token="+s.ada.AccessToken, `{"package":0,"tools":[]}`, header...)
			if a.Status != http.StatusUnauthorized && a.Status != http.StatusUnsupportedMediaType || a.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: %d %s %v", name, a.Status, a.Body, a.Header)
			}
		}
		s.want(t, "1.0.0", "")
	})
}
