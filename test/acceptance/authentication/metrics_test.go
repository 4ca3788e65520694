package authentication

import (
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestMetricsOfSignIn checks that each event of sign-in counts in its metrics and in no others.
func TestMetricsOfSignIn(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		// This test signs in and fails faster than people do.
		s := e.Start(t, fixture.RiskPolicy("relaxed"), "LOCKOUT_THRESHOLD=3")
		ada := e.NewPerson(t, "ada@example.com")
		signIn := func(password string) apiclient.Response {
			return apiclient.Call(t, "POST", s.API+"/auth/login", map[string]any{
				"email": ada.Email, "password": password, "deviceInfo": ada.Device,
			})
		}
		s.WantCounted(t, func() { signIn("wrong").WantStatus(t, http.StatusUnauthorized) },
			"logins_total invalid_credentials", "password_hashes_total done")
		s.WantCounted(t, func() { ada.Login(t, s) },
			"logins_total succeeded", "password_hashes_total done", "sessions_started_total UNVERIFIED",
			"login_risk_score")
		checkRefreshMetrics(t, s, ada)
		ada.Login(t, s)
		checkStepUpMetrics(t, e, s, ada)
		checkSecondFactorMetrics(t, e, s, ada)

		s.WantCounted(t, func() {
			for range 3 {
				signIn("wrong").WantStatus(t, http.StatusUnauthorized)
			}
			signIn(fixture.Password).WantStatus(t, http.StatusForbidden)
		}, "logins_total invalid_credentials", "logins_total invalid_credentials", "logins_total invalid_credentials",
			"logins_total account_locked",
			"password_hashes_total done", "password_hashes_total done", "password_hashes_total done", "lockouts_total")
		await.Until(t, "notices of the device, the replay and the lock", func() bool {
			return s.Metric("tollgate_notices_total", "outcome", "sent") == 3
		})
	})
}

// checkRefreshMetrics refreshes a person's token and replays it.
func checkRefreshMetrics(t *testing.T, s *fixture.Service, p *fixture.Person) {
	t.Helper()
	refresh := func(status int) {
		apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{"refreshToken": p.RefreshToken}).
			WantStatus(t, status)
	}
	s.WantCounted(t, func() { refresh(http.StatusOK) }, "token_refreshes_total refreshed")
	s.WantCounted(t, func() { refresh(http.StatusForbidden) }, "token_refreshes_total replayed")
	s.WantCounted(t, func() { refresh(http.StatusUnauthorized) }, "token_refreshes_total invalid")
}

// checkStepUpMetrics makes a step-up with a wrong code, a resend, the right code, and the right
// code again.
func checkStepUpMetrics(t *testing.T, e *fixture.Environment, s *fixture.Service, p *fixture.Person) {
	t.Helper()
	var id string
	s.WantCounted(t, func() { id = startChallenge(t, p, s) }, "step_ups_total EMAIL_OTP initiated")
	verify := func(code string, status int) {
		apiclient.Call(t, "POST", s.API+"/auth/step-up/verify", map[string]string{"challengeId": id, "otp": code}).
			WantStatus(t, status)
	}
	wrong := "000000"
	if e.LastCode(t, p.Email) == wrong {
		wrong = "000001"
	}
	s.WantCounted(t, func() { verify(wrong, http.StatusUnauthorized) }, "step_ups_total EMAIL_OTP invalid_otp")
	s.WantCounted(t, func() {
		apiclient.Call(t, "POST", s.API+"/auth/step-up/resend", map[string]string{"challengeId": id}).WantStatus(t,
			http.StatusOK)
	}, "step_ups_total EMAIL_OTP resent")
	code := e.LastCode(t, p.Email)
	s.WantCounted(t, func() { verify(code, http.StatusOK) }, "step_ups_total EMAIL_OTP passed")
	s.WantCounted(t, func() { verify(code, http.StatusBadRequest) }, "step_ups_total EMAIL_OTP challenge_closed")
}

// checkSecondFactorMetrics signs a person in with an authenticator.
func checkSecondFactorMetrics(t *testing.T, e *fixture.Environment, s *fixture.Service, p *fixture.Person) {
	t.Helper()
	app := e.EnrolAuthenticator(t, p)
	var user string
	s.WantCounted(t, func() { user = startLogin(t, p, s) }, "logins_total mfa_required", "password_hashes_total done")
	s.WantCounted(t, func() { verifyLogin(t, p, s, user, "no code").WantStatus(t, http.StatusUnauthorized) },
		"logins_total invalid_mfa")
	s.WantCounted(t, func() { acceptLogin(t, p, verifyLogin(t, p, s, user, app.Recovery[0])) },
		"logins_total succeeded", "sessions_started_total LIMITED_TRUST", "login_risk_score")
	var challenge struct{ ChallengeID string }
	s.WantCounted(t, func() {
		p.PostJSON(t, s, "/auth/step-up/initiate", map[string]string{"method": "AUTHENTICATOR_APP"}).WantStatus(t,
			http.StatusOK).Decode(t, &challenge)
	}, "step_ups_total AUTHENTICATOR_APP initiated")
	s.WantCounted(t, func() {
		apiclient.Call(t, "POST", s.API+"/auth/step-up/verify", map[string]string{
			"challengeId": challenge.ChallengeID, "otp": app.Code(t, 1),
		}).WantStatus(t, http.StatusOK)
	}, "step_ups_total AUTHENTICATOR_APP passed")
}
