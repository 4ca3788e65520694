package companies

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// isSignedIn reports whether the session of a browser goes on.
func (b *browser) isSignedIn() bool {
	b.t.Helper()
	return b.signedInAt(b.api)
}

// logOut sends a logout token, and returns the status and the body.
func (s *site) logOut(t *testing.T, token string) apiclient.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.API+"/auth/company/acme/logout",
		strings.NewReader(url.Values{"logout_token": {token}}.Encode()))
	must.Succeed(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(r)
	must.Succeed(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.Succeed(t, err)
	a := apiclient.Response{Status: response.StatusCode, Header: response.Header, Body: text}
	if err := openapi.CheckDescribed(r, a); err != nil {
		t.Error(err)
	}
	return a
}

// TestBackChannelLogout checks which tokens end which sessions. What is wrong with a token is checked in
// core/auth/company.
func TestBackChannelLogout(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := startSite(t, e)
		now := time.Now()
		claims := func(changes ...any) map[string]any {
			all := s.provider.NewClaims(s.provider.ClientID, now)
			all["sub"], all["events"] = "u1", object{"http://schemas.openid.net/event/backchannel-logout": object{}}
			for i := 0; i < len(changes); i += 2 {
				if all[changes[i].(string)] = changes[i+1]; changes[i+1] == nil {
					delete(all, changes[i].(string))
				}
			}
			return all
		}
		signIn := func(sid string) *browser {
			s.provider.SignIn("u1", "ada@acme.example", "sid", sid)
			return s.newBrowser(t).signIn().want(200)
		}
		first, second := signIn("one"), signIn("two")
		other := s.newBrowser(t)
		s.provider.SignIn("u2", "bert@acme.example", "sid", "one")
		other.signIn().want(200)
		for name, token := range map[string]string{
			"no token":       "",
			"another issuer": s.provider.Sign(t, claims("iss", "https://elsewhere.example")),
			"an old one":     s.provider.Sign(t, claims("iat", now.Add(-6*time.Minute).Unix())),
			"no events":      s.provider.Sign(t, claims("events", nil)),
			"a nonce":        s.provider.Sign(t, claims("nonce", "n")),
			"another key":    oidcissuer.NewKey(t, s.provider.Key().Algorithm).Sign(t, claims()),
			"another type":   s.provider.Key().SignTyped(t, "at+jwt", claims()),
			"no signature":   "eyJhbGciOiJub25lIn0." + strings.Split(s.provider.Sign(t, claims()), ".")[1] + ".",
			"too long":       s.provider.Sign(t, claims("padding", strings.Repeat("x", 16<<10))),
		} {
			var body object
			s.logOut(t, token).WantStatus(t, 400).Decode(t, &body)
			if body["error"] != "invalid_request" || body["error_description"] == "" {
				t.Errorf("%s: the body is %v", name, body)
			}
		}
		if !first.isSignedIn() || !second.isSignedIn() {
			t.Fatal("a refused token has ended a session")
		}
		s.logOut(t, s.provider.Sign(t, claims("sid", "one", "sub", "u2", "jti", "x"))).WantStatus(t, 200)
		if !first.isSignedIn() || other.isSignedIn() {
			t.Error("a sid of two people does not end the session of the one who is named")
		}
		one := s.provider.Key().SignTyped(t, "logout+jwt", claims("sid", "one"))
		s.logOut(t, one).WantStatus(t, 200)
		await.Until(t, "the session of the sid ends", func() bool { return !first.isSignedIn() })
		if !second.isSignedIn() {
			t.Error("another session has ended too")
		}
		s.logOut(t, one).WantStatus(t, 400) // its jti was used
		s.logOut(t, s.provider.Key().SignTyped(t, "", claims("sid", "one"))).WantStatus(t, 200)
		s.logOut(t, s.provider.Sign(t, claims("sub", "unknown"))).WantStatus(t, 200)
		s.provider.SignIn("u2", "bert@acme.example")
		other = s.newBrowser(t).signIn().want(200)
		s.logOut(t, s.provider.Sign(t, claims())).WantStatus(t, 200)
		await.Until(t, "all sessions of the identity end", func() bool { return !second.isSignedIn() })
		if !other.isSignedIn() {
			t.Error("the session of another person has ended")
		}
		s.wantEvents(t, "company_logout")
		apiclient.Call(t, "POST", s.API+"/auth/company/acme/logout", object{"logout_token": one}).WantStatus(t, 415)
		s.want(t, 204, "DELETE", providers+"/acme", nil)
		s.logOut(t, one).WantStatus(t, 404)
	})
}

// TestRecheck checks that groups are read again, and that a leaver's sessions and tokens end.
func TestRecheck(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := startSite(t, e)
		s.askForRefresh(t, "recheck", "10s",
			"groupGrants", []object{{"group": "devs", "action": "publish", "resource": "com.acme/*"}})
		good := oidcissuer.Behaviour{Claims: object{"sub": "u1", "email": "ada@acme.example"}, Refresh: "the refresh token"}
		s.provider.Behave(good)
		b := s.newBrowser(t).signIn().want(200)
		if got := s.grants(t, "ada@acme.example"); len(got) != 0 {
			t.Fatalf("the grants are %v", got)
		}
		good.Claims = object{"sub": "u1", "groups": "devs"}
		s.provider.Behave(good)
		s.makeDue(t)
		await.Until(t, "the groups are read again", func() bool { return len(s.grants(t, "ada@acme.example")) == 1 })
		if !b.isSignedIn() {
			t.Fatal("a session that was confirmed has ended")
		}
		good.Left = true
		s.provider.Behave(good)
		s.makeDue(t)
		await.Until(t, "the session of a leaver ends", func() bool { return !b.isSignedIn() })
		s.wantEvents(t, "company_left")
		if got := s.grants(t, "ada@acme.example"); len(got) != 0 {
			t.Errorf("the grants of a leaver are %v", got)
		}
	})
}

// TestRecheckWithoutIDToken checks that an answer to a refresh without an ID token changes groups only if the
// userinfo names them: the groups may be in the ID token only.
func TestRecheckWithoutIDToken(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.askForRefresh(t, "recheck", "10s", "requiredGroups", []string{"devs"},
			"groupGrants", []object{{"group": "ops", "action": "publish", "resource": "com.acme/*"}})
		s.provider.Behave(oidcissuer.Behaviour{
			Claims:  object{"sub": "u1", "email": "ada@acme.example", "groups": []string{"devs", "ops"}},
			Refresh: "the refresh token",
			Exchange: func(w http.ResponseWriter, form url.Values) bool {
				if form.Get("grant_type") != "refresh_token" {
					return false
				}
				oidcissuer.Document(object{"access_token": "a", "token_type": "Bearer"}).ServeHTTP(w, nil)
				return true
			},
		})
		b := s.newBrowser(t).signIn().want(200)
		for _, test := range []struct {
			userinfo object
			grants   int
		}{
			{object{"sub": "u1"}, 1},
			{object{"sub": "u1", "iss": s.provider.URL}, 1},
			{object{"sub": "u1", "groups": []string{"devs"}}, 0},
			{object{"sub": "u1"}, 0},
			{object{"sub": "u1", "groups": []string{"devs", "ops"}}, 1},
		} {
			s.provider.Respond(oidcissuer.UserinfoPath, oidcissuer.Document(test.userinfo))
			s.checkAgain(t)
			if got := s.grants(t, "ada@acme.example"); len(got) != test.grants || !b.isSignedIn() {
				t.Errorf("after %v the grants are %v, want %d", test.userinfo, got, test.grants)
			}
		}
		s.provider.Respond(oidcissuer.UserinfoPath, oidcissuer.Document(object{"sub": "u1", "groups": []string{}}))
		s.makeDue(t)
		await.Until(t, "the session ends without a required group", func() bool { return !b.isSignedIn() })
	})
}

// TestGroupOfAView: a group of a linked identity opens a view, in a session that began with a password
// too, and closes it on two instances within a second (contract C-36).
func TestGroupOfAView(t *testing.T) {
	e := fixture.NewProduction(t)
	s := startSite(t, e)
	s.askForRefresh(t)
	other := e.Start(t, append(fixture.RegistrySettings(), fixture.RiskPolicy("relaxed"))...)
	s.want(t, 201, "PUT", "/admin/v1/views/devs", object{"access": "people", "groups": []string{"acme/devs"}})
	bert := e.NewWriter(t, s.Service, "bert@acme.example")
	wait := func(what string, want int) {
		t.Helper()
		withinSeconds(t, what, func() bool {
			for _, api := range []string{s.API, other.API} {
				if apiclient.Call(t, "GET", api+"/registries/devs/v0.1/servers", nil, bert.Bearer()...).Status != want {
					return false
				}
			}
			return true
		})
	}
	wait("a person without an identity", 404)
	good := oidcissuer.Behaviour{
		Claims: object{"sub": "u1", "email": "bert@acme.example", "groups": []string{"devs"}}, Refresh: "the refresh token",
	}
	s.provider.Behave(good)
	s.newBrowser(t).signIn().want(200)
	wait("a person in the group", 200)
	for _, groups := range []any{[]string{"dev", "devs/x"}, "devs", object{"devs": true}, []string{"ops", "devs"}} {
		good.Claims = object{"sub": "u1", "groups": groups}
		s.provider.Behave(good)
		s.checkAgain(t)
		want := map[bool]int{true: 200, false: 404}[fmt.Sprint(groups) == "devs" || fmt.Sprint(groups) == "[ops devs]"]
		wait(fmt.Sprintf("the groups %v", groups), want)
	}
	s.want(t, 204, "DELETE", providers+"/acme", nil)
	wait("the provider is removed", 404)
}

// TestGroupOfARule: a rule about calls selects people by a group of a linked identity, and names it; who
// leaves the group is not selected any more on two instances within a second.
func TestGroupOfARule(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.askForRefresh(t)
		e.NewWriter(t, s.Service, "bert@acme.example", "publish com.acme/*").
			PostJSON(t, s.Service, "/v0.1/publish", fixture.NewServerDocument("com.acme/tools", "1.0.0")).WantStatus(t, 200)
		s.want(t, 201, "PUT", "/admin/v1/access-rules/devs", object{
			"order": 1, "effect": "allow", "subjects": []string{"group:acme/devs"}, "servers": []string{"com.acme/*"},
		})
		wait := func(what, effect, selector string) {
			t.Helper()
			withinSeconds(t, what, func() bool {
				got := s.want(t, 200, "POST", "/admin/v1/access/explain", object{
					"subject": "person:bert@acme.example", "server": "com.acme/tools", "tool": "x",
				})
				return got["effect"] == effect && got["selector"] == selector
			})
		}
		wait("a person without an identity", "deny", "")
		good := oidcissuer.Behaviour{
			Claims: object{"sub": "u1", "email": "bert@acme.example", "groups": []string{"ops", "devs"}}, Refresh: "the refresh token",
		}
		s.provider.Behave(good)
		s.newBrowser(t).signIn().want(200)
		wait("a person in the group", "allow", "group:acme/devs")
		good.Claims = object{"sub": "u1", "groups": []string{"ops"}}
		s.provider.Behave(good)
		s.checkAgain(t)
		wait("a person who has left the group", "deny", "")
	})
}

// TestUnaskedRefreshToken checks that a refresh token that a provider gives without offline_access is not
// kept: it may end with the session there, and its end would be taken for the end of the employment.
func TestUnaskedRefreshToken(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		behave := oidcissuer.Behaviour{Claims: object{"sub": "u1", "email": "ada@acme.example"}, Refresh: "unasked"}
		s.provider.Behave(behave)
		b := s.newBrowser(t).signIn().want(200)
		s.wantNoRefreshToken(t)
		s.askForRefresh(t)
		other := s.newBrowser(t).signIn().want(200)
		behave.Left = true
		s.provider.Behave(behave)
		s.makeDue(t)
		await.Until(t, "the session with a refresh token ends", func() bool { return !other.isSignedIn() })
		if b.isSignedIn() {
			t.Error("a session of the same identity goes on after the person has left")
		}
	})
}

// wantNoRefreshToken fails the test if a refresh token is stored.
func (s *site) wantNoRefreshToken(t *testing.T) {
	t.Helper()
	var n int
	if err := s.database(t).QueryRowContext(t.Context(),
		"SELECT count(*) FROM company_logins WHERE length(refresh) > 0 OR recheck_at IS NOT NULL").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d sign-ins have a refresh token, error %v", n, err)
	}
}

// checkAgain makes the time of the next check of every session pass, and waits until the provider has
// answered for all.
func (s *site) checkAgain(t *testing.T) {
	t.Helper()
	before := s.makeDue(t)
	await.Until(t, "the provider confirms all sessions", func() bool {
		for id, at := range s.readLogins(t) {
			if at == before[id] {
				return false
			}
		}
		return true
	})
}

// makeDue makes the time of the next check of every session pass. It returns what readLogins does.
func (s *site) makeDue(t *testing.T) map[string]string {
	t.Helper()
	before := s.readLogins(t)
	if _, err := s.database(t).ExecContext(t.Context(),
		"UPDATE company_logins SET recheck_at = answered_at WHERE recheck_at IS NOT NULL"); err != nil {
		t.Fatal(err)
	}
	return before
}

// database returns the database of the service, which is opened once.
func (s *site) database(t *testing.T) *sql.DB {
	t.Helper()
	if s.db == nil {
		s.db = s.e.OpenDatabase(t)
	}
	return s.db
}

// readLogins returns when the provider has last answered for each session.
func (s *site) readLogins(t *testing.T) map[string]string {
	t.Helper()
	rows, err := s.database(t).QueryContext(t.Context(), "SELECT id, answered_at FROM company_logins")
	must.Succeed(t, err)
	defer func() { _ = rows.Close() }() // all rows are read, or the test has failed
	all := map[string]string{}
	for rows.Next() {
		var id string
		var at any
		must.Succeed(t, rows.Scan(&id, &at))
		all[id] = fmt.Sprint(at)
	}
	must.Succeed(t, rows.Err())
	return all
}
