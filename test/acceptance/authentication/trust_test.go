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
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
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
