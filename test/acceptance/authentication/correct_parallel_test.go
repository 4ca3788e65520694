package authentication

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// startInstances starts n instances with one database and one counter store, or one instance if the
// environment is not shared.
func startInstances(t *testing.T, e *fixture.Environment, n int, environ ...string) []*fixture.Service {
	t.Helper()
	if !e.Shared {
		n = 1
	}
	list := make([]*fixture.Service, n)
	for i := range list {
		list[i] = e.Start(t, environ...)
	}
	return list
}

// newLoginBody returns the body of a person's login.
func newLoginBody(p *fixture.Person, word string) map[string]any {
	return map[string]any{"email": p.Email, "password": word, "deviceInfo": p.Device}
}

// countFailures counts the failed logins in a person's audit log.
func countFailures(t *testing.T, p *fixture.Person, s *fixture.Service) (n int) {
	t.Helper()
	for _, entry := range p.ReadAuditLog(t, s, "eventType=LOGIN_ATTEMPT&limit=1000").Logs {
		if !entry.Success {
			n++
		}
	}
	return n
}

// TestRightLoginsInParallel sends correct passwords to all instances at once, when one more wrong
// password would lock the account: all must be accepted, and the service must not count or log any
// as a failure. Then it mixes them with fewer wrong ones than the threshold, and with more.
func TestRightLoginsInParallel(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		on := startInstances(t, e, 3, append([]string{"AUTH_RATE_LIMIT=100000"}, fixture.RelaxedRiskSettings...)...)
		p := e.NewPerson(t, "ada@example.com")
		send := func(n, wrong int) map[string]int {
			return countOutcomes(t, fixture.CallInParallel(t, n, func(i int) (apiclient.Response, error) {
				word := fixture.Password
				if i < wrong {
					word = "wrong"
				}
				return apiclient.TryCall("POST", on[i%len(on)].API+"/auth/login", newLoginBody(p, word))
			}))
		}
		for range 2 {
			for range 4 {
				apiclient.Call(t, "POST", on[0].API+"/auth/login", newLoginBody(p, "wrong")).
					WantStatus(t, http.StatusUnauthorized)
			}
			if got := send(12, 0); got["200"] != 12 {
				t.Errorf("12 right passwords: %v", got)
			}
		}
		p.Login(t, on[0])
		if n := countFailures(t, p, on[0]); n != 8 {
			t.Errorf("%d failed logins in the audit log, want the 8 wrong ones", n)
		}
		for range 2 {
			if got := send(20, 4); got["200"] != 16 || got["401 invalid_credentials"] != 4 {
				t.Errorf("4 wrong passwords of 20: %v", got)
			}
			p.Login(t, on[0]) // resets the count
		}
		// A correct password resets the count, so the number of checked guesses among nineteen is
		// not fixed; but five in a row always lock.
		if got := send(20, 19); got["200"] > 1 ||
			got["200"]+got["401 invalid_credentials"]+got["403 account_locked"] != 20 {
			t.Errorf("19 wrong passwords of 20: %v", got)
		}
	})
}

// TestRightCodesInParallel sends correct codes at once to all instances, at every endpoint that
// takes a code, and a change of the password, of which one succeeds.
func TestRightCodesInParallel(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		on := startInstances(t, e, 2,
			append([]string{"AUTH_RATE_LIMIT=100000", "LOCKOUT_THRESHOLD=2"}, fixture.RelaxedRiskSettings...)...)
		p := e.NewPerson(t, "ada@example.com")
		app := e.EnrolAuthenticator(t, p)
		people := make([]*fixture.Person, 8)
		user := ""
		for i := range people {
			people[i] = &fixture.Person{
				Email: p.Email, Device: map[string]string{"userAgent": fmt.Sprint("device ", i)},
			}
			user = startLogin(t, people[i], on[0])
		}
		got := countOutcomes(t, fixture.CallInParallel(t, len(people), func(i int) (apiclient.Response, error) {
			return apiclient.TryCall("POST", on[i%len(on)].API+"/auth/mfa/verify",
				map[string]any{"userId": user, "mfaCode": app.Recovery[i], "deviceInfo": people[i].Device})
		}))
		if got["200"] != len(people) {
			t.Errorf("%d recovery codes on as many devices: %v", len(people), got)
		}

		startLogin(t, p, on[0])
		acceptLogin(t, p, verifyLogin(t, p, on[0], user, app.Code(t, 1)))
		p.StepUp(t, e, on[0])
		all := func(path string, body map[string]string) map[string]int {
			return countOutcomes(t, fixture.CallInParallel(t, 12, func(i int) (apiclient.Response, error) {
				return apiclient.TryCall("POST", on[i%len(on)].API+path, body, p.Bearer()...)
			}))
		}
		wantOne := func(what string, got map[string]int, others string) {
			t.Helper()
			if got["200"] != 1 || got[others] != 11 {
				t.Errorf("%s twelve times at once: %v, want one success and %s", what, got, others)
			}
		}
		code := map[string]string{"mfaCode": app.Recovery[8]}
		wantOne("disable", all("/auth/mfa/disable", code), "409 conflict")
		var enrolled struct{ OTPAuthURI string }
		p.PostJSON(t, on[0], "/auth/mfa/enroll", nil).WantStatus(t, http.StatusOK).Decode(t, &enrolled)
		app = &fixture.Authenticator{URI: enrolled.OTPAuthURI}
		wantOne("activate", all("/auth/mfa/activate", map[string]string{"mfaCode": app.Code(t, 0)}), "409 conflict")
		wantOne("a change of the password", all("/auth/password", map[string]string{
			"currentPassword": fixture.Password, "newPassword": fixture.Password + "!",
		}), "401 invalid_credentials")
		if n := countFailures(t, p, on[0]); n != 0 {
			t.Errorf("%d failed logins in the audit log, want 0", n)
		}
	})
}
