package authentication

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestPasswordChange checks that the new password works at once, and that nothing that began with
// the old one can be completed.
func TestPasswordChange(t *testing.T) {
	const renewed = "Another-Horse-8-Battery"
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := e.Start(t)
		ada, thief := e.NewPerson(t, "ada@example.com"), &fixture.Person{
			Email: "ada@example.com", Device: map[string]string{"userAgent": "thief"},
		}
		thief.Login(t, s)
		change := func(p *fixture.Person, present, next string) apiclient.Response {
			return p.PostJSON(t, s, "/auth/password", map[string]string{
				"currentPassword": present, "newPassword": next,
			})
		}
		apiclient.WantAuthError(t, change(thief, fixture.Password, renewed).WantStatus(t, http.StatusForbidden),
			"insufficient_trust")
		ada.Login(t, s)
		ada.StepUp(t, e, s)
		apiclient.WantAuthError(t, change(ada, "Wrong-Horse-9", renewed).WantStatus(t, http.StatusUnauthorized),
			"invalid_credentials")
		for _, weak := range []string{"short", "Password123!"} {
			details := apiclient.WantAuthError(t,
				change(ada, fixture.Password, weak).WantStatus(t, http.StatusBadRequest), "validation_error")
			if fields, _ := details["fields"].(map[string]any); fields["newPassword"] == nil {
				t.Errorf("details are %v", details)
			}
		}
		apiclient.WantAuthError(t,
			ada.PostJSON(t, s, "/auth/password", map[string]string{"newPassword": renewed}).WantStatus(t,
				http.StatusBadRequest), "invalid_input")
		change(ada, fixture.Password, renewed).WantStatus(t, http.StatusOK)

		for apiclient.Call(t, "GET", s.API+"/sessions", nil, thief.Bearer()...).Status == http.StatusOK {
			// A cached copy of the session is accepted for less than a second more.
		}
		apiclient.WantAuthError(t, apiclient.Call(t, "GET", s.API+"/sessions", nil, thief.Bearer()...), "invalid_token")
		apiclient.WantAuthError(t,
			apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{"refreshToken": thief.RefreshToken}).
				WantStatus(t, http.StatusUnauthorized), "invalid_token")
		apiclient.Call(t, "GET", s.API+"/sessions", nil, ada.Bearer()...).WantStatus(t, http.StatusOK)
		login := func(word string) apiclient.Response {
			return apiclient.Call(t, "POST", s.API+"/auth/login", map[string]any{
				"email": ada.Email, "password": word, "deviceInfo": ada.Device,
			})
		}
		apiclient.WantAuthError(t, login(fixture.Password).WantStatus(t, http.StatusUnauthorized),
			"invalid_credentials")
		login(renewed).WantStatus(t, http.StatusOK)

		for range 5 {
			apiclient.WantAuthError(t, change(ada, "Wrong-Horse-9", renewed).WantStatus(t, http.StatusUnauthorized),
				"invalid_credentials")
		}
		apiclient.WantAuthError(t, change(ada, renewed, fixture.Password).WantStatus(t, http.StatusForbidden),
			"account_locked")
		login(renewed).WantStatus(t, http.StatusOK) // wrong guesses by a signed-in person do not lock the account
	})
}

func readFiles(t *testing.T, dir string) []byte {
	t.Helper()
	var all []byte
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all = append(all, content...)
		return err
	})
	must.Succeed(t, err)
	return all
}
