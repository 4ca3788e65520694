package acceptance

import (
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// counted returns the counters of sign-in and registry, by name and label
// values, and how many risk scores were seen. Notices are left out, which go
// out when they do, and checks of tokens, most of which a test does not mean.
func (s *service) counted() map[string]float64 {
	s.t.Helper()
	found := map[string]float64{}
	families := s.metrics()
	for _, name := range []string{
		"logins_total", "sessions_started_total", "login_risk_score", "lockouts_total", "step_ups_total", "token_refreshes_total",
		"password_hashes_total", "publications_total", "package_checks_total",
	} {
		for _, m := range families["tollgate_"+name].GetMetric() {
			key := []string{name}
			for _, l := range m.GetLabel() {
				key = append(key, l.GetValue())
			}
			found[strings.Join(key, " ")] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return found
}

// moves wants an act to add to these counters, each as often as it is named,
// and to no other.
func (s *service) moves(t *testing.T, act func(), counters ...string) {
	t.Helper()
	before := s.counted()
	act()
	moved := map[string]float64{}
	for key, value := range s.counted() {
		if value != before[key] {
			moved[key] = value - before[key]
		}
	}
	want := map[string]float64{}
	for _, c := range counters {
		want[c]++
	}
	if !maps.Equal(moved, want) {
		t.Errorf("counters moved by %v, want %v", moved, want)
	}
}

// TestMetricsOfSignIn wants each thing that happens at sign-in to move its
// counters and no others.
func TestMetricsOfSignIn(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		// Somebody signs in and fails here faster than people do.
		s := e.start(t, "RISK_VELOCITY_SESSIONS=1000", "RISK_FAILED_FEW=0", "RISK_FAILED_SOME=0", "RISK_FAILED_MANY=0", "LOCKOUT_THRESHOLD=3")
		ada := e.newPerson(t, "ada@example.com")
		signIn := func(password string) answer {
			return call(t, "POST", s.api+"/auth/login", map[string]any{"email": ada.email, "password": password, "deviceInfo": ada.device})
		}
		s.moves(t, func() { signIn("wrong").want(t, http.StatusUnauthorized) },
			"logins_total invalid_credentials", "password_hashes_total done")
		s.moves(t, func() { ada.login(t, s) },
			"logins_total succeeded", "password_hashes_total done", "sessions_started_total UNVERIFIED", "login_risk_score")
		refreshes(t, s, ada)
		ada.login(t, s)
		stepUps(t, e, s, ada)
		secondFactors(t, e, s, ada)

		s.moves(t, func() {
			for range 3 {
				signIn("wrong").want(t, http.StatusUnauthorized)
			}
			signIn(password).want(t, http.StatusForbidden)
		}, "logins_total invalid_credentials", "logins_total invalid_credentials", "logins_total invalid_credentials", "logins_total account_locked",
			"password_hashes_total done", "password_hashes_total done", "password_hashes_total done", "lockouts_total")
		await(t, "notices of the device, the replay and the lock", func() bool { return s.metric("tollgate_notices_total", "outcome", "sent") == 3 })
	})
}

// refreshes turns a person's token over, and replays it.
func refreshes(t *testing.T, s *service, p *person) {
	t.Helper()
	refresh := func(status int) {
		call(t, "POST", s.api+"/auth/refresh", map[string]string{"refreshToken": p.refreshToken}).want(t, status)
	}
	s.moves(t, func() { refresh(http.StatusOK) }, "token_refreshes_total refreshed")
	s.moves(t, func() { refresh(http.StatusForbidden) }, "token_refreshes_total replayed")
	s.moves(t, func() { refresh(http.StatusUnauthorized) }, "token_refreshes_total invalid")
}

// stepUps goes through a step-up with a wrong code, a code sent again, the
// right one, and that one once more.
func stepUps(t *testing.T, e *environment, s *service, p *person) {
	t.Helper()
	var id string
	s.moves(t, func() { id = p.challenge(t, s) }, "step_ups_total EMAIL_OTP initiated")
	verify := func(code string, status int) {
		call(t, "POST", s.api+"/auth/step-up/verify", map[string]string{"challengeId": id, "otp": code}).want(t, status)
	}
	wrong := "000000"
	if e.code(t, p.email) == wrong {
		wrong = "000001"
	}
	s.moves(t, func() { verify(wrong, http.StatusUnauthorized) }, "step_ups_total EMAIL_OTP invalid_otp")
	s.moves(t, func() {
		call(t, "POST", s.api+"/auth/step-up/resend", map[string]string{"challengeId": id}).want(t, http.StatusOK)
	}, "step_ups_total EMAIL_OTP resent")
	code := e.code(t, p.email)
	s.moves(t, func() { verify(code, http.StatusOK) }, "step_ups_total EMAIL_OTP passed")
	s.moves(t, func() { verify(code, http.StatusBadRequest) }, "step_ups_total EMAIL_OTP challenge_closed")
}

// secondFactors signs a person in with an authenticator.
func secondFactors(t *testing.T, e *environment, s *service, p *person) {
	t.Helper()
	app := e.enrol(t, p)
	var user string
	s.moves(t, func() { user = p.half(t, s) }, "logins_total mfa_required", "password_hashes_total done")
	s.moves(t, func() { p.verify(t, s, user, "no code").want(t, http.StatusUnauthorized) }, "logins_total invalid_mfa")
	s.moves(t, func() { p.take(t, p.verify(t, s, user, app.recovery[0])) },
		"logins_total succeeded", "sessions_started_total LIMITED_TRUST", "login_risk_score")
	var challenge struct{ ChallengeID string }
	s.moves(t, func() {
		p.post(t, s, "/auth/step-up/initiate", map[string]string{"method": "AUTHENTICATOR_APP"}).want(t, http.StatusOK).decode(t, &challenge)
	}, "step_ups_total AUTHENTICATOR_APP initiated")
	s.moves(t, func() {
		call(t, "POST", s.api+"/auth/step-up/verify", map[string]string{"challengeId": challenge.ChallengeID, "otp": app.code(t, 1)}).want(t, http.StatusOK)
	}, "step_ups_total AUTHENTICATOR_APP passed")
}

// TestMetricsOfTheRegistry wants each change of the registry, done or refused,
// to move its counters and no others, and checked tokens to be counted.
func TestMetricsOfTheRegistry(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		npm := npmRegistry(t)
		registries := filepath.Join(e.dir, "registries.json")
		write(t, registries, `{"npm": [{"baseUrl": "`+npm.URL+`", "token": "the-token"}]}`)
		s := e.start(t, "PACKAGE_CHECKS=enforce", "PACKAGE_REGISTRIES="+registries)
		ada := e.writerFor(t, s, "ada@example.com", "publish com.example/*", "edit com.example/*")
		send := func(status int, method, path string, body any) func() {
			return func() {
				t.Helper()
				call(t, method, s.api+"/v0.1"+path, body, ada.bearer()...).want(t, status)
			}
		}
		doc, foreign, broken := document("com.example/weather", "1.0.0"), document("org.example/weather", "1.0.0"), document("com.example/weather", "2.0.0")
		delete(broken, "description")
		version := at("com.example/weather", "1.0.0")
		s.moves(t, send(http.StatusOK, "POST", "/publish", doc), "publications_total publish done")
		s.moves(t, send(http.StatusConflict, "POST", "/publish", doc), "publications_total publish conflict")
		s.moves(t, send(http.StatusForbidden, "POST", "/publish", foreign), "publications_total publish forbidden")
		s.moves(t, send(http.StatusUnprocessableEntity, "POST", "/publish", broken), "publications_total publish invalid")
		s.moves(t, send(http.StatusOK, "PUT", version, doc), "publications_total replace done")
		deprecated := map[string]string{"status": "deprecated"}
		s.moves(t, send(http.StatusOK, "PATCH", version+"/status", deprecated), "publications_total status done")
		s.moves(t, send(http.StatusBadRequest, "PATCH", at("com.example/weather")+"/status", deprecated), "publications_total status invalid")
		s.moves(t, send(http.StatusOK, "DELETE", version, nil), "publications_total delete done")
		s.moves(t, send(http.StatusNotFound, "DELETE", version, nil), "publications_total delete not_found")
		s.moves(t, func() { call(t, "DELETE", s.api+"/v0.1"+version, nil).want(t, http.StatusUnauthorized) }, "publications_total delete unauthenticated")

		claimed := document("com.example/claimed", "1.0.0")
		claim := map[string]any{
			"registryType": "npm", "registryBaseUrl": npm.URL, "identifier": "claimed", "version": "1.0.0",
			"transport": map[string]string{"type": "stdio"},
		}
		claimed["packages"] = []any{claim}
		s.moves(t, send(http.StatusOK, "POST", "/publish", claimed), "publications_total publish done", "package_checks_total owned npm")
		claim["identifier"], claimed["version"] = "none", "2.0.0"
		s.moves(t, send(http.StatusUnprocessableEntity, "POST", "/publish", claimed), "publications_total publish invalid", "package_checks_total refused npm")
		claim["registryType"] = "conda"
		s.moves(t, send(http.StatusUnprocessableEntity, "POST", "/publish", claimed),
			"publications_total publish invalid", "package_checks_total unsupported other")

		before := s.metric("tollgate_session_checks_total")
		send(http.StatusNotFound, "DELETE", version, nil)()
		if n := s.metric("tollgate_session_checks_total") - before; n != 1 {
			t.Errorf("one checked token counts %v", n)
		}
	})
}
