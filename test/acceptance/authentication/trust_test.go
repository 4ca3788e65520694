package authentication

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestLimitedTrustEnrolsNothing checks a session that had only the password and the fields of a
// confirmed device. It must not change any credential of the person, neither at once nor later with
// what it enrolled.
func TestLimitedTrustEnrolsNothing(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RiskPolicy("fast"))
		owner := e.NewPerson(t, "ada@example.com")
		owner.Login(t, s)
		owner.StepUp(t, e, s)
		thief := &fixture.Person{Email: owner.Email, Device: owner.Device}
		thief.Login(t, s)
		if thief.TrustLevel != "LIMITED_TRUST" {
			t.Fatalf("without the device token the level is %s", thief.TrustLevel)
		}
		for path, body := range map[string]any{
			"/auth/mfa/enroll": nil, "/auth/mfa/activate": map[string]string{"mfaCode": "123456"},
			"/auth/mfa/disable": map[string]string{"mfaCode": "123456"},
			"/auth/password": map[string]string{
				"currentPassword": fixture.Password, "newPassword": "Another-Horse-8-Battery",
			},
		} {
			a := thief.PostJSON(t, s, path, body).WantStatus(t, http.StatusForbidden)
			if d := apiclient.WantAuthError(t, a, "insufficient_trust"); d["requiredTrustLevel"] != "FULL_TRUST" ||
				!strings.Contains(a.Header.Get("WWW-Authenticate"), `acr_values="FULL_TRUST"`) {
				t.Errorf("%s: %s, %v", path, a.Body, a.Header)
			}
		}

		// The owner's own pending authenticator must not help another person.
		var enrolled struct{ Secret, OTPAuthURI string }
		owner.PostJSON(t, s, "/auth/mfa/enroll", nil).WantStatus(t, http.StatusOK).Decode(t, &enrolled)
		app := &fixture.Authenticator{URI: enrolled.OTPAuthURI}
		second := &fixture.Person{Email: owner.Email, Device: map[string]string{"userAgent": "second"}}
		second.Login(t, s)
		second.StepUp(t, e, s)
		apiclient.WantAuthError(t,
			second.PostJSON(t, s, "/auth/mfa/activate", map[string]string{"mfaCode": app.Code(t, 0)}).WantStatus(t,
				http.StatusConflict), "conflict")
		if list := e.RunCommand(t, "", "user", "list", "--mfa", "pending"); !strings.Contains(list, owner.Email) {
			t.Errorf("pending are %s", list)
		}
		owner.PostJSON(t, s, "/auth/mfa/activate", map[string]string{"mfaCode": app.Code(t, 0)}).WantStatus(t,
			http.StatusOK)
		if list := e.RunCommand(t, "", "user", "list", "--mfa", "active", "-o",
			"json"); !strings.Contains(list, owner.Email) || !strings.Contains(list, "mfaEnrolledAt") {
			t.Errorf("active are %s", list)
		}
		if list := e.RunCommand(t, "", "user", "list", "--mfa", "none"); strings.Contains(list, owner.Email) {
			t.Errorf("without an authenticator are %s", list)
		}
	})
}

// TestTrustedMarkNeedsACode marks a device as trusted from a session that had the password and the
// device token only: the mark counts after the next code on the device, and not before (contract
//
func TestTrustedMarkNeedsACode(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		file := filepath.Join(e.Dir, "notices.jsonl")
		s := e.Start(t, fixture.RiskPolicy("fast"), "NOTICE_LOG_FILE="+file)
		ada := e.NewPerson(t, "ada@example.com")
		wantLogin := func(level string) {
			t.Helper()
			if ada.Login(t, s); ada.TrustLevel != level {
				t.Errorf("the sign-in is at %s, want %s", ada.TrustLevel, level)
			}
		}
		mark := func(status string) {
			t.Helper()
			path := s.API + "/devices/" + findFirefox(t, ada, s) + "/trust"
			var got struct{ Device struct{ TrustStatus string } }
			apiclient.Call(t, "PUT", path, map[string]string{"trustStatus": status}, ada.Bearer()...).WantStatus(t,
				http.StatusOK).Decode(t, &got)
			if got.Device.TrustStatus != status {
				t.Errorf("the device is %s, want %s", got.Device.TrustStatus, status)
			}
		}
		ada.Login(t, s)
		ada.StepUp(t, e, s)
		mark("UNTRUSTED")
		wantLogin("LIMITED_TRUST")
		mark("TRUSTED")
		await.Until(t, "a notice", func() bool {
			return strings.Contains(readNotices(t, file),
				"One of your devices was marked as trusted from a session in which no code was entered.")
		})
		wantLogin("LIMITED_TRUST")
		mark("TRUSTED") // set again
		mark("PENDING")
		mark("TRUSTED")
		wantLogin("LIMITED_TRUST")
		ada.StepUp(t, e, s)
		wantLogin("FULL_TRUST")
		mark("TRUSTED") // from here on it counts
		wantLogin("FULL_TRUST")
		mark("PENDING")
		wantLogin("LIMITED_TRUST")
		ada.StepUp(t, e, s)
		mark("TRUSTED") // at FULL_TRUST
		wantLogin("FULL_TRUST")
	})
}

// findFirefox returns the id of the person's device with that browser.
func findFirefox(t *testing.T, p *fixture.Person, s *fixture.Service) string {
	t.Helper()
	for _, d := range listDevices(t, p, s) {
		if d.Metadata.Browser == "Firefox" && !d.Revoked {
			return d.ID
		}
	}
	t.Fatal("no device has Firefox")
	return ""
}

// readNotices returns the notices of a file that otp-log wrote.
func readNotices(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(content)
}

// TestNoticesOfCredentialChanges checks that each change of a credential sends a notice, and that
// the audit log has the level of the session.
func TestNoticesOfCredentialChanges(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		file := filepath.Join(e.Dir, "notices.jsonl")
		s := e.Start(t, "NOTICE_LOG_FILE="+file)
		ada := e.NewPerson(t, "ada@example.com")
		ada.Login(t, s)
		ada.StepUp(t, e, s)
		told := func(sentence string) {
			t.Helper()
			await.Until(t, sentence, func() bool { return strings.Contains(readNotices(t, file), sentence) })
		}
		var enrolled struct{ Secret, OTPAuthURI string }
		ada.PostJSON(t, s, "/auth/mfa/enroll", nil).WantStatus(t, http.StatusOK).Decode(t, &enrolled)
		told("An authenticator app was added to your account.")
		app := &fixture.Authenticator{URI: enrolled.OTPAuthURI}
		ada.PostJSON(t, s, "/auth/mfa/activate", map[string]string{"mfaCode": app.Code(t, 0)}).WantStatus(t,
			http.StatusOK)
		told("An authenticator app was activated for your account.")
		ada.PostJSON(t, s, "/auth/mfa/disable", map[string]string{"mfaCode": app.Code(t, 1)}).WantStatus(t,
			http.StatusOK)
		told("The authenticator app of your account was disabled.")
		ada.PostJSON(t, s, "/auth/password", map[string]string{
			"currentPassword": fixture.Password, "newPassword": "Another-Horse-8-Battery",
		}).WantStatus(t, http.StatusOK)
		told("The password of your account was changed")
		if strings.Contains(readNotices(t, file), enrolled.Secret) {
			t.Error("a notice has the secret")
		}
		page := ada.ReadAuditLog(t, s, "eventType=CREDENTIAL_CHANGE")
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

// TestUntrustedDevice checks that the mark UNTRUSTED lowers the sessions on the device on every
// instance, that a refresh does not raise them, and that a code does.
func TestUntrustedDevice(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		on := startPair(t, e)
		s, other := on[0], on[len(on)-1]
		ada := e.NewPerson(t, "ada@example.com", "publish com.example/*")
		ada.Login(t, s)
		ada.StepUp(t, e, s)
		elsewhere := &fixture.Person{Email: ada.Email, Device: map[string]string{"userAgent": "elsewhere"}}
		elsewhere.Login(t, s)
		elsewhere.StepUp(t, e, s)
		levelOn := func(at *fixture.Service, p *fixture.Person) string {
			t.Helper()
			var got struct{ TrustLevel string }
			apiclient.Call(t, "GET", at.API+"/auth/session", nil, p.Bearer()...).WantStatus(t, http.StatusOK).
				Decode(t, &got)
			return got.TrustLevel
		}
		if levelOn(other, ada) != "FULL_TRUST" { // and the other instance has a cached copy
			t.Fatal("the session is not at FULL_TRUST")
		}
		device := findFirefox(t, ada, s)
		apiclient.Call(t, "PUT", s.API+"/devices/"+device+"/trust", `{"trustStatus":"UNTRUSTED"}`,
			elsewhere.Bearer()...).WantStatus(t, http.StatusOK)
		if level := levelOn(s, ada); level != "LIMITED_TRUST" {
			t.Errorf("on the instance that marked it the level is %s", level)
		}
		await.Until(t, "the lower level on the other instance", func() bool {
			return levelOn(other, ada) == "LIMITED_TRUST"
		})
		publish := func() apiclient.Response {
			return apiclient.Call(t, "POST", other.API+"/v0.1/publish",
				fixture.NewServerDocument("com.example/untrusted", "1.0.0"), ada.Bearer()...)
		}
		publish().WantStatus(t, http.StatusForbidden)
		refreshTokens(t, ada, other)
		if level := levelOn(other, ada); level != "LIMITED_TRUST" || levelOn(s, elsewhere) != "FULL_TRUST" {
			t.Errorf("after a refresh the level is %s, elsewhere %s", level, levelOn(s, elsewhere))
		}
		publish().WantStatus(t, http.StatusForbidden)
		ada.StepUp(t, e, s)
		publish().WantStatus(t, http.StatusOK)
	})
}

// TestNoticesOfLosses checks that the owner gets a notice when a session with only the password
// takes something from them, for each kind as often as the limit allows, and no notice for the acts
// of a session at LIMITED_TRUST.
func TestNoticesOfLosses(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		file := filepath.Join(e.Dir, "notices.jsonl")
		s := e.Start(t, "NOTICE_LOG_FILE="+file, "NOTICE_LIMIT=2", fixture.RiskPolicy("fast"))
		ada := e.NewPerson(t, "ada@example.com")
		const revoked, untrusted, ended = "One of your devices was revoked", "One of your devices was marked as untrusted", "One of your sessions was ended"
		ada.Login(t, s)
		ada.StepUp(t, e, s)
		for range 2 { // the owner's acts at FULL_TRUST
			second := &fixture.Person{Email: ada.Email, Device: map[string]string{"userAgent": "second"}}
			second.Login(t, s)
			id, _ := fixture.ReadSession(t, s, second)
			apiclient.Call(t, "DELETE", s.API+"/sessions/"+id, nil, ada.Bearer()...).WantStatus(t, http.StatusOK)
		}
		device := findFirefox(t, ada, s)
		thief := &fixture.Person{Email: ada.Email, Device: map[string]string{"userAgent": "thief"}}
		thief.Login(t, s)
		if thief.TrustLevel != "UNVERIFIED" {
			t.Fatalf("with a password alone the level is %s", thief.TrustLevel)
		}
		apiclient.Call(t, "PUT", s.API+"/devices/"+device+"/trust", `{"trustStatus":"UNTRUSTED"}`, thief.Bearer()...).
			WantStatus(t, http.StatusOK)
		// changes nothing more
		apiclient.Call(t, "PUT", s.API+"/devices/"+device+"/trust", `{"trustStatus":"UNTRUSTED"}`, thief.Bearer()...).
			WantStatus(t, http.StatusOK)
		id, _ := fixture.ReadSession(t, s, ada)
		apiclient.Call(t, "DELETE", s.API+"/sessions/"+id, nil, thief.Bearer()...).WantStatus(t, http.StatusOK)
		for range 4 {
			ada.Login(t, s)
			id, _ = fixture.ReadSession(t, s, ada)
			thief.PostJSON(t, s, "/auth/logout", map[string]string{"sessionId": id}).WantStatus(t, http.StatusOK)
		}
		apiclient.Call(t, "DELETE", s.API+"/devices/"+device, nil, thief.Bearer()...).WantStatus(t, http.StatusOK)
		// is revoked already
		apiclient.Call(t, "DELETE", s.API+"/devices/"+device, nil, thief.Bearer()...).WantStatus(t, http.StatusOK)
		own, _ := fixture.ReadSession(t, s, thief)
		thief.PostJSON(t, s, "/auth/logout", map[string]string{"sessionId": own}).WantStatus(t, http.StatusOK)
		await.Until(t, "the notices", func() bool {
			all := readNotices(t, file)
			return strings.Contains(all, revoked) && strings.Contains(all, untrusted) && strings.Count(all, ended) == 2
		})
		s.Stop()
		all := readNotices(t, file)
		for sentence, n := range map[string]int{revoked: 1, untrusted: 1, ended: 2} {
			if strings.Count(all, sentence) != n {
				t.Errorf("%d notices say %q, want %d", strings.Count(all, sentence), sentence, n)
			}
		}
	})
}

// TestRoutesAndLevels checks that every route that needs a session accepts its trust levels, and
// refuses the others before it checks anything else.
func TestRoutesAndLevels(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, "STEP_UP_LIMIT=100")
		sessions := map[string]*fixture.Person{}
		begin := func(want string, p *fixture.Person) {
			t.Helper()
			p.Login(t, s)
			sessions[p.TrustLevel] = p
			if p.TrustLevel != want {
				t.Fatalf("the session of %s is at %s, want %s", p.Email, p.TrustLevel, want)
			}
		}
		grants := []string{"publish com.example/*", "edit com.example/*"}
		begin("UNVERIFIED", e.NewPerson(t, "unverified@example.com", grants...))
		full := e.NewPerson(t, "full@example.com", grants...)
		full.Login(t, s)
		full.StepUp(t, e, s)
		sessions["FULL_TRUST"] = full
		limited := e.NewPerson(t, "limited@example.com", grants...)
		limited.Login(t, s)
		limited.StepUp(t, e, s)
		limited.DeviceToken = ""
		begin("LIMITED_TRUST", limited)
		high := e.NewPerson(t, "high@example.com", grants...)
		high.Login(t, s)
		high.Login(t, s)
		apiclient.Call(t, "POST", s.API+"/auth/login", map[string]any{
			"email": high.Email, "password": "wrong", "deviceInfo": high.Device,
		}).WantStatus(t, http.StatusUnauthorized)
		begin("HIGH_RISK", high)

		levels := []string{"HIGH_RISK", "UNVERIFIED", "LIMITED_TRUST", "FULL_TRUST"}
		const server = "/v0.1/servers/com.example%2Fnone"
		for _, route := range []struct {
			method, path string
			body         any
			level        string
			status       int // with a session that the route accepts
		}{
			{"GET", "/auth/session", nil, "HIGH_RISK", 200},
			{"POST", "/auth/logout", map[string]string{"sessionId": unknownID}, "HIGH_RISK", 404},
			{"POST", "/auth/step-up/initiate", map[string]string{"method": "AUTHENTICATOR_APP"}, "UNVERIFIED", 400},
			{"GET", "/devices", nil, "UNVERIFIED", 200},
			{"PUT", "/devices/" + unknownID + "/trust", `{"trustStatus":"TRUSTED"}`, "UNVERIFIED", 404},
			{"DELETE", "/devices/" + unknownID, nil, "UNVERIFIED", 404},
			{"GET", "/sessions", nil, "UNVERIFIED", 200},
			{"DELETE", "/sessions/" + unknownID, nil, "UNVERIFIED", 404},
			{"GET", "/audit-logs", nil, "UNVERIFIED", 200},
			{
				"POST", "/auth/password", map[string]string{
					"currentPassword": fixture.Password, "newPassword": "short",
				}, "FULL_TRUST", 400,
			},
			{"POST", "/auth/mfa/activate", map[string]string{"mfaCode": "123456"}, "FULL_TRUST", 409},
			{"POST", "/auth/mfa/disable", map[string]string{"mfaCode": "123456"}, "FULL_TRUST", 409},
			{"POST", "/auth/mfa/enroll", nil, "FULL_TRUST", 200},
			{"POST", "/v0.1/publish", map[string]any{"name": "com.example/none"}, "FULL_TRUST", 422},
			{
				"PUT", server + "/versions/1.0.0", fixture.NewServerDocument("com.example/none", "1.0.0"),
				"FULL_TRUST", 404,
			},
			{"DELETE", server + "/versions/1.0.0", nil, "FULL_TRUST", 404},
			{"PATCH", server + "/versions/1.0.0/status", map[string]string{"status": "deprecated"}, "FULL_TRUST", 404},
			{"PATCH", server + "/status", map[string]string{"status": "deprecated"}, "FULL_TRUST", 404},
		} {
			admitted := false
			for _, level := range levels {
				admitted = admitted || level == route.level
				a := apiclient.Call(t, route.method, s.API+route.path, route.body, sessions[level].Bearer()...)
				challenge := a.Header.Get("WWW-Authenticate")
				switch refused := a.Status == http.StatusForbidden &&
					strings.Contains(challenge, `acr_values="`+route.level+`"`); {
				case admitted && a.Status != route.status:
					t.Errorf("%s %s at %s: %d %s, want %d", route.method, route.path, level, a.Status, a.Body,
						route.status)
				case !admitted && !refused:
					t.Errorf("%s %s at %s: %d %s, challenge %q, want a refusal", route.method, route.path, level,
						a.Status, a.Body, challenge)
				}
			}
		}
	})
}
