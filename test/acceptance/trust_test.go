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
