package acceptance

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLimitedTrustEnrolsNothing wants a session that took a password and the fields of a confirmed device, and no proof, to change
// nothing that a person signs in with: not at once, and not later with what it enrolled.
func TestLimitedTrustEnrolsNothing(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t, "RISK_VELOCITY_SESSIONS=1000")
		owner := e.newPerson(t, "ada@example.com")
		owner.login(t, s)
		owner.stepUp(t, e, s)
		thief := &person{email: owner.email, device: owner.device}
		thief.login(t, s)
		if thief.trustLevel != "LIMITED_TRUST" {
			t.Fatalf("without the device token the level is %s", thief.trustLevel)
		}
		for path, body := range map[string]any{
			"/auth/mfa/enroll": nil, "/auth/mfa/activate": map[string]string{"mfaCode": "123456"},
			"/auth/mfa/disable": map[string]string{"mfaCode": "123456"},
			"/auth/password":    map[string]string{"currentPassword": password, "newPassword": "Another-Horse-8-Battery"},
		} {
			a := thief.post(t, s, path, body).want(t, http.StatusForbidden)
			if d := wantCode(t, a, "insufficient_trust"); d["requiredTrustLevel"] != "FULL_TRUST" || !strings.Contains(a.header.Get("WWW-Authenticate"), `acr_values="FULL_TRUST"`) {
				t.Errorf("%s: %s, %v", path, a.body, a.header)
			}
		}

		// The owner's own pending authenticator is of no use to anybody else.
		var enrolled struct{ Secret, OTPAuthURI string }
		owner.post(t, s, "/auth/mfa/enroll", nil).want(t, http.StatusOK).decode(t, &enrolled)
		app := &authenticator{key: readKey(t, enrolled.OTPAuthURI)}
		second := &person{email: owner.email, device: map[string]string{"userAgent": "second"}}
		second.login(t, s)
		second.stepUp(t, e, s)
		wantCode(t, second.post(t, s, "/auth/mfa/activate", map[string]string{"mfaCode": app.code(t, 0)}).want(t, http.StatusConflict), "conflict")
		if list := e.tollgate(t, "", "user", "list", "--mfa", "pending"); !strings.Contains(list, owner.email) {
			t.Errorf("pending are %s", list)
		}
		owner.post(t, s, "/auth/mfa/activate", map[string]string{"mfaCode": app.code(t, 0)}).want(t, http.StatusOK)
		if list := e.tollgate(t, "", "user", "list", "--mfa", "active", "-o", "json"); !strings.Contains(list, owner.email) || !strings.Contains(list, "mfaEnrolledAt") {
			t.Errorf("active are %s", list)
		}
		if list := e.tollgate(t, "", "user", "list", "--mfa", "none"); strings.Contains(list, owner.email) {
			t.Errorf("without an authenticator are %s", list)
		}
	})
}

// firefox returns the id of the person's device with that browser.
func (p *person) firefox(t *testing.T, s *service) string {
	t.Helper()
	for _, d := range p.devices(t, s) {
		if d.Metadata.Browser == "Firefox" && !d.Revoked {
			return d.ID
		}
	}
	t.Fatal("no device has Firefox")
	return ""
}

// noticesIn returns the notices of a file that otp-log wrote.
func noticesIn(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(content)
}

// TestNoticesOfCredentialChanges wants a notice of each change of what a person signs in with, and the level of the session in the
// audit log.
func TestNoticesOfCredentialChanges(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		file := filepath.Join(e.dir, "notices.jsonl")
		s := e.start(t, "NOTICE_LOG_FILE="+file)
		ada := e.newPerson(t, "ada@example.com")
		ada.login(t, s)
		ada.stepUp(t, e, s)
		told := func(sentence string) {
			t.Helper()
			await(t, sentence, func() bool { return strings.Contains(noticesIn(t, file), sentence) })
		}
		var enrolled struct{ Secret, OTPAuthURI string }
		ada.post(t, s, "/auth/mfa/enroll", nil).want(t, http.StatusOK).decode(t, &enrolled)
		told("An authenticator app was added to your account.")
		app := &authenticator{key: readKey(t, enrolled.OTPAuthURI)}
		ada.post(t, s, "/auth/mfa/activate", map[string]string{"mfaCode": app.code(t, 0)}).want(t, http.StatusOK)
		told("An authenticator app was activated for your account.")
		ada.post(t, s, "/auth/mfa/disable", map[string]string{"mfaCode": app.code(t, 1)}).want(t, http.StatusOK)
		told("The authenticator app of your account was disabled.")
		ada.post(t, s, "/auth/password", map[string]string{"currentPassword": password, "newPassword": "Another-Horse-8-Battery"}).want(t, http.StatusOK)
		told("The password of your account was changed")
		if strings.Contains(noticesIn(t, file), enrolled.Secret) {
			t.Error("a notice has the secret")
		}
		page := ada.log(t, s, "eventType=CREDENTIAL_CHANGE")
		if len(page.Logs) != 4 {
			t.Errorf("%d events, want four", len(page.Logs))
		}
		for _, entry := range page.Logs {
			if entry.Details["trustLevel"] != "FULL_TRUST" {
				t.Errorf("event %+v lacks the level", entry)
			}
		}
	})
}

// TestUntrustedDevice wants the mark UNTRUSTED to lower the sessions on the device, on every instance, and a refresh to keep that;
// a code raises them again.
func TestUntrustedDevice(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		on := e.instances(t)
		s, other := on[0], on[len(on)-1]
		ada := e.newPerson(t, "ada@example.com", "publish com.example/*")
		ada.login(t, s)
		ada.stepUp(t, e, s)
		elsewhere := &person{email: ada.email, device: map[string]string{"userAgent": "elsewhere"}}
		elsewhere.login(t, s)
		elsewhere.stepUp(t, e, s)
		levelOn := func(at *service, p *person) string {
			t.Helper()
			var got struct{ TrustLevel string }
			call(t, "GET", at.api+"/auth/session", nil, p.bearer()...).want(t, http.StatusOK).decode(t, &got)
			return got.TrustLevel
		}
		if levelOn(other, ada) != "FULL_TRUST" { // and the other instance has a copy
			t.Fatal("the session is not at FULL_TRUST")
		}
		device := ada.firefox(t, s)
		call(t, "PUT", s.api+"/devices/"+device+"/trust", `{"trustStatus":"UNTRUSTED"}`, elsewhere.bearer()...).want(t, http.StatusOK)
		if level := levelOn(s, ada); level != "LIMITED_TRUST" {
			t.Errorf("on the instance that marked it the level is %s", level)
		}
		await(t, "the lower level on the other instance", func() bool { return levelOn(other, ada) == "LIMITED_TRUST" })
		publish := func() answer {
			return call(t, "POST", other.api+"/v0.1/publish", document("com.example/untrusted", "1.0.0"), ada.bearer()...)
		}
		publish().want(t, http.StatusForbidden)
		ada.refresh(t, other)
		if level := levelOn(other, ada); level != "LIMITED_TRUST" || levelOn(s, elsewhere) != "FULL_TRUST" {
			t.Errorf("after a refresh the level is %s, elsewhere %s", level, levelOn(s, elsewhere))
		}
		publish().want(t, http.StatusForbidden)
		ada.stepUp(t, e, s)
		publish().want(t, http.StatusOK)
	})
}

// TestNoticesOfLosses wants the owner to get a notice of what a session with no more than the password takes from them, of each kind
// as often as the limit allows, and none of what a session at LIMITED_TRUST does.
func TestNoticesOfLosses(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		file := filepath.Join(e.dir, "notices.jsonl")
		s := e.start(t, "NOTICE_LOG_FILE="+file, "NOTICE_LIMIT=2", "RISK_VELOCITY_SESSIONS=1000")
		ada := e.newPerson(t, "ada@example.com")
		const revoked, untrusted, ended = "A device of yours was revoked", "A device of yours was marked as untrusted", "A session of yours was ended"
		ada.login(t, s)
		ada.stepUp(t, e, s)
		for range 2 { // what the owner does at FULL_TRUST
			second := &person{email: ada.email, device: map[string]string{"userAgent": "second"}}
			second.login(t, s)
			id, _ := sessionOf(t, s, second)
			call(t, "DELETE", s.api+"/sessions/"+id, nil, ada.bearer()...).want(t, http.StatusOK)
		}
		device := ada.firefox(t, s)
		thief := &person{email: ada.email, device: map[string]string{"userAgent": "thief"}}
		thief.login(t, s)
		if thief.trustLevel != "UNVERIFIED" {
			t.Fatalf("with a password alone the level is %s", thief.trustLevel)
		}
		call(t, "PUT", s.api+"/devices/"+device+"/trust", `{"trustStatus":"UNTRUSTED"}`, thief.bearer()...).want(t, http.StatusOK)
		call(t, "PUT", s.api+"/devices/"+device+"/trust", `{"trustStatus":"UNTRUSTED"}`, thief.bearer()...).want(t, http.StatusOK) // lowers nothing more
		id, _ := sessionOf(t, s, ada)
		call(t, "DELETE", s.api+"/sessions/"+id, nil, thief.bearer()...).want(t, http.StatusOK)
		for range 4 {
			ada.login(t, s)
			id, _ = sessionOf(t, s, ada)
			thief.post(t, s, "/auth/logout", map[string]string{"sessionId": id}).want(t, http.StatusOK)
		}
		call(t, "DELETE", s.api+"/devices/"+device, nil, thief.bearer()...).want(t, http.StatusOK)
		call(t, "DELETE", s.api+"/devices/"+device, nil, thief.bearer()...).want(t, http.StatusOK) // is revoked already
		own, _ := sessionOf(t, s, thief)
		thief.post(t, s, "/auth/logout", map[string]string{"sessionId": own}).want(t, http.StatusOK)
		await(t, "the notices", func() bool {
			all := noticesIn(t, file)
			return strings.Contains(all, revoked) && strings.Contains(all, untrusted) && strings.Count(all, ended) == 2
		})
		s.stop()
		all := noticesIn(t, file)
		for sentence, n := range map[string]int{revoked: 1, untrusted: 1, ended: 2} {
			if strings.Count(all, sentence) != n {
				t.Errorf("%d notices say %q, want %d", strings.Count(all, sentence), sentence, n)
			}
		}
	})
}

// TestRoutesAndLevels wants every route that asks for a session to admit the levels that it admits, and to refuse the others before it
// looks at anything else.
func TestRoutesAndLevels(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t, "STEP_UP_LIMIT=100")
		sessions := map[string]*person{}
		begin := func(want string, p *person) {
			t.Helper()
			p.login(t, s)
			sessions[p.trustLevel] = p
			if p.trustLevel != want {
				t.Fatalf("the session of %s is at %s, want %s", p.email, p.trustLevel, want)
			}
		}
		grants := []string{"publish com.example/*", "edit com.example/*"}
		begin("UNVERIFIED", e.newPerson(t, "unverified@example.com", grants...))
		full := e.newPerson(t, "full@example.com", grants...)
		full.login(t, s)
		full.stepUp(t, e, s)
		sessions["FULL_TRUST"] = full
		limited := e.newPerson(t, "limited@example.com", grants...)
		limited.login(t, s)
		limited.stepUp(t, e, s)
		limited.deviceToken = ""
		begin("LIMITED_TRUST", limited)
		high := e.newPerson(t, "high@example.com", grants...)
		high.login(t, s)
		high.login(t, s)
		call(t, "POST", s.api+"/auth/login", map[string]any{"email": high.email, "password": "wrong", "deviceInfo": high.device}).want(t, http.StatusUnauthorized)
		begin("HIGH_RISK", high)

		levels := []string{"HIGH_RISK", "UNVERIFIED", "LIMITED_TRUST", "FULL_TRUST"}
		const server = "/v0.1/servers/com.example%2Fnone"
		for _, route := range []struct {
			method, path string
			body         any
			level        string
			status       int // of a session that is admitted
		}{
			{"GET", "/auth/session", nil, "HIGH_RISK", 200},
			{"POST", "/auth/logout", map[string]string{"sessionId": nobodysID}, "HIGH_RISK", 404},
			{"POST", "/auth/step-up/initiate", map[string]string{"method": "AUTHENTICATOR_APP"}, "UNVERIFIED", 400},
			{"GET", "/devices", nil, "UNVERIFIED", 200},
			{"PUT", "/devices/" + nobodysID + "/trust", `{"trustStatus":"TRUSTED"}`, "UNVERIFIED", 404},
			{"DELETE", "/devices/" + nobodysID, nil, "UNVERIFIED", 404},
			{"GET", "/sessions", nil, "UNVERIFIED", 200},
			{"DELETE", "/sessions/" + nobodysID, nil, "UNVERIFIED", 404},
			{"GET", "/audit-logs", nil, "UNVERIFIED", 200},
			{"POST", "/auth/password", map[string]string{"currentPassword": password, "newPassword": "short"}, "FULL_TRUST", 400},
			{"POST", "/auth/mfa/activate", map[string]string{"mfaCode": "123456"}, "FULL_TRUST", 409},
			{"POST", "/auth/mfa/disable", map[string]string{"mfaCode": "123456"}, "FULL_TRUST", 409},
			{"POST", "/auth/mfa/enroll", nil, "FULL_TRUST", 200},
			{"POST", "/v0.1/publish", map[string]any{"name": "com.example/none"}, "FULL_TRUST", 422},
			{"PUT", server + "/versions/1.0.0", document("com.example/none", "1.0.0"), "FULL_TRUST", 404},
			{"DELETE", server + "/versions/1.0.0", nil, "FULL_TRUST", 404},
			{"PATCH", server + "/versions/1.0.0/status", map[string]string{"status": "deprecated"}, "FULL_TRUST", 404},
			{"PATCH", server + "/status", map[string]string{"status": "deprecated"}, "FULL_TRUST", 404},
		} {
			admitted := false
			for _, level := range levels {
				admitted = admitted || level == route.level
				a := call(t, route.method, s.api+route.path, route.body, sessions[level].bearer()...)
				challenge := a.header.Get("WWW-Authenticate")
				switch refused := a.status == http.StatusForbidden && strings.Contains(challenge, `acr_values="`+route.level+`"`); {
				case admitted && a.status != route.status:
					t.Errorf("%s %s at %s: %d %s, want %d", route.method, route.path, level, a.status, a.body, route.status)
				case !admitted && !refused:
					t.Errorf("%s %s at %s: %d %s, challenge %q, want a refusal", route.method, route.path, level, a.status, a.body, challenge)
				}
			}
		}
	})
}
