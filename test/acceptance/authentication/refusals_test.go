package authentication

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

const (
	unknownID  = "66666666-7777-4888-8999-aaaaaaaaaaaa"
	badRequest = http.StatusBadRequest
)

// TestAuthRefusals gets each error that the API describes, with its code, field and headers. What else
// is refused is checked in adapters/rest/authapi, and who may call what in test/acceptance/statuses
// (contract ).
func TestAuthRefusals(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := e.Start(t)
		ada, eve := e.NewPerson(t, "ada@example.com"), e.NewPerson(t, "eve@example.com")
		ada.Login(t, s)
		eve.Login(t, s)
		session, _ := fixture.ReadSession(t, s, eve)
		device, challenge := listDevices(t, eve, s)[0].ID, startChallenge(t, ada, s)
		login := func(email, password string) any {
			return map[string]any{"email": email, "password": password, "deviceInfo": ada.Device}
		}
		const verify, resend = "/auth/step-up/verify", "/auth/step-up/resend"
		for _, r := range []struct {
			method, path string
			body         any
			status       int
			code, field  string
		}{
			{"POST", "/auth/login", "{", 400, "invalid_input", ""},
			{"POST", "/auth/login", login("ada", "x"), 400, "validation_error", "email"},
			{"POST", "/auth/login", login("nobody@example.com", "x"), 401, "invalid_credentials", ""},
			{"POST", "/auth/login", strings.Repeat(" ", 1<<20+1), 413, "invalid_input", ""},
			{"GET", "/auth/login", nil, 405, "method_not_allowed", ""},
			{"POST", "/auth/none", nil, 404, "resource_not_found", ""},
			{"POST", "/auth/refresh", `{"refreshToken":""}`, 400, "invalid_input", "refreshToken"},
			{"POST", "/auth/refresh", map[string]string{"refreshToken": ada.AccessToken}, 401, "invalid_token", ""},
			{"POST", "/auth/logout", `{"sessionId":"7"}`, 400, "validation_error", "sessionId"},
			{"POST", "/auth/logout", map[string]string{"sessionId": unknownID}, 404, "resource_not_found", ""},
			{"POST", "/auth/logout", map[string]string{"sessionId": session}, 403, "access_denied", ""},
			{"POST", "/auth/step-up/initiate", `{"method":"PIGEON"}`, 400, "validation_error", "method"},
			{"POST", "/auth/step-up/initiate", `{"method":"SMS_OTP"}`, 400, "validation_error", "method"},
			{"POST", verify, map[string]string{"challengeId": challenge}, 400, "invalid_input", "otp"},
			{"POST", verify, map[string]string{"challengeId": challenge, "otp": "none"}, 401, "invalid_otp", ""},
			{"POST", verify, `{"challengeId":"` + unknownID + `","otp":"1"}`, 400, "invalid_input", "challengeId"},
			{"POST", resend, `{"challengeId":"7"}`, 400, "validation_error", "challengeId"},
			{"POST", resend, map[string]string{"challengeId": unknownID}, 404, "resource_not_found", ""},
			{"PUT", "/devices/" + device + "/trust", `{"trustStatus":"LOVED"}`, 400, "validation_error", "trustStatus"},
			{"PUT", "/devices/" + device + "/trust", `{"trustStatus":"TRUSTED"}`, 403, "access_denied", ""},
			{"PUT", "/devices/" + unknownID + "/trust", `{"trustStatus":"TRUSTED"}`, 404, "resource_not_found", ""},
			{"PUT", "/devices/" + device + "/name", "{}", 400, "invalid_input", "name"},
			{"PUT", "/devices/" + device + "/name", `{"name":"Laptop"}`, 403, "access_denied", ""},
			{"PUT", "/devices/" + unknownID + "/name", `{"name":"Laptop"}`, 404, "resource_not_found", ""},
			{"DELETE", "/devices/7", nil, 400, "validation_error", "id"},
			{"DELETE", "/devices/" + device, nil, 403, "access_denied", ""},
			{"DELETE", "/devices/" + unknownID, nil, 404, "resource_not_found", ""},
			{"DELETE", "/sessions/7", nil, 400, "validation_error", "id"},
			{"DELETE", "/sessions/" + session, nil, 403, "access_denied", ""},
			{"DELETE", "/sessions/" + unknownID, nil, 404, "resource_not_found", ""},
			{"GET", "/audit-logs?limit=0", nil, 400, "validation_error", "limit"},
			{"GET", "/sessions?limit=0", nil, 400, "validation_error", "limit"},
		} {
			a := apiclient.Call(t, r.method, s.API+r.path, r.body, ada.Bearer()...).WantStatus(t, r.status)
			details := apiclient.WantAuthError(t, a, r.code)
			if fields, _ := details["fields"].(map[string]any); r.field != "" && fields[r.field] == nil {
				t.Errorf("%s %s: the details %v do not name %s", r.method, r.path, details, r.field)
			}
			for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
				if a.Header.Get(name) == "" { // contract A-53
					t.Errorf("%s %s has no header %s", r.method, r.path, name)
				}
			}
		}
	})
}

// startChallenge opens a challenge and returns its id.
func startChallenge(t *testing.T, p *fixture.Person, s *fixture.Service) string {
	t.Helper()
	var got struct{ ChallengeID string }
	p.PostJSON(t, s, "/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}).WantStatus(t, http.StatusOK).
		Decode(t, &got)
	return got.ChallengeID
}
