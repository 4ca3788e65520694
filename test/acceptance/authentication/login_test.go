package authentication

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestRefresh refreshes tokens and replays an old one.
func TestRefresh(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := e.Start(t)
		p := e.NewPerson(t, "ada@example.com")
		p.Login(t, s)
		first, access := p.RefreshToken, p.AccessToken
		var next struct{ AccessToken, RefreshToken string }
		a := apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{"refreshToken": first}).WantStatus(t,
			http.StatusOK)
		a.Decode(t, &next)
		if next.RefreshToken == first || next.AccessToken == "" {
			t.Fatalf("refresh answered %s", a.Body)
		}
		if got := a.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control is %q", got)
		}
		replay := apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{"refreshToken": first})
		apiclient.WantAuthError(t, replay.WantStatus(t, http.StatusForbidden), "access_denied")
		ended := apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{"refreshToken": next.RefreshToken})
		apiclient.WantAuthError(t, ended.WantStatus(t, http.StatusUnauthorized), "invalid_token")
		initiate := apiclient.Call(t, "POST", s.API+"/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"},
			"Authorization", "Bearer "+access)
		apiclient.WantAuthError(t, initiate.WantStatus(t, http.StatusUnauthorized), "invalid_token")
	})
}

// TestLockout checks that the failure that reaches the threshold gets the same response as any
// other failure, and that the next attempt is refused with any password.
func TestLockout(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := e.Start(t)
		p := e.NewPerson(t, "ada@example.com")
		for _, email := range []string{p.Email, "nobody@example.com"} {
			for range 5 {
				a := apiclient.Call(t, "POST", s.API+"/auth/login",
					map[string]any{"email": email, "password": "wrong", "deviceInfo": p.Device})
				apiclient.WantAuthError(t, a.WantStatus(t, http.StatusUnauthorized), "invalid_credentials")
			}
			a := apiclient.Call(t, "POST", s.API+"/auth/login",
				map[string]any{"email": email, "password": fixture.Password, "deviceInfo": p.Device})
			details := apiclient.WantAuthError(t, a.WantStatus(t, http.StatusForbidden), "account_locked")
			if _, err := time.Parse(time.RFC3339, details["lockoutUntil"].(string)); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestOperatorShutsOut checks that the operator's commands apply at once to a running service.
func TestOperatorShutsOut(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := e.Start(t)
		p := e.NewPerson(t, "ada@example.com")
		p.Login(t, s)
		try := func(password string) apiclient.Response {
			return apiclient.Call(t, "POST", s.API+"/auth/login", map[string]any{
				"email": p.Email, "password": password, "deviceInfo": p.Device,
			})
		}
		login := func() apiclient.Response { return try(fixture.Password) }
		e.RunCommand(t, "", "user", "lock", "--email", p.Email)
		if d := apiclient.WantAuthError(t, login().WantStatus(t, http.StatusForbidden),
			"account_locked"); d["lockoutUntil"] != "9999-12-31T23:59:59.000Z" {
			t.Errorf("the lock of an operator has the details %v", d)
		}
		unknown := apiclient.Call(t, "POST", s.API+"/auth/login", map[string]any{
			"email": "nobody@example.com", "password": "wrong", "deviceInfo": p.Device,
		})
		if wrong := try("wrong"); wrong.Status != http.StatusUnauthorized || !bytes.Equal(wrong.Body, unknown.Body) {
			t.Errorf("a wrong password gets %d %s, an unknown address gets %s", wrong.Status, wrong.Body, unknown.Body)
		}
		// a lock does not end sessions
		apiclient.Call(t, "GET", s.API+"/sessions", nil, p.Bearer()...).WantStatus(t, http.StatusOK)
		e.RunCommand(t, "", "user", "unlock", "--email", p.Email)
		p.Login(t, s)

		e.RunCommand(t, "", "user", "disable", "--email", p.Email)
		apiclient.WantAuthError(t, login().WantStatus(t, http.StatusUnauthorized), "invalid_credentials")
		apiclient.WantAuthError(t,
			apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{"refreshToken": p.RefreshToken}).
				WantStatus(t, http.StatusUnauthorized), "invalid_token")
		for apiclient.Call(t, "GET", s.API+"/sessions", nil, p.Bearer()...).Status == http.StatusOK {
			// A cached copy of the session is accepted for less than a second more.
		}
		apiclient.WantAuthError(t, apiclient.Call(t, "GET", s.API+"/sessions", nil, p.Bearer()...), "invalid_token")
		e.RunCommand(t, "", "user", "enable", "--email", p.Email)
		p.Login(t, s)
	})
}
