package plugins

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/mailserver"
)

var sixDigits = regexp.MustCompile(`\b[0-9]{6}\b`)

// mailSettings returns the settings for a mail server.
func mailSettings(m *mailserver.Server) []string {
	return []string{
		"OTP_EMAIL_PLUGIN=otp-email", "SMTP_HOST=127.0.0.1", "SMTP_PORT=" + m.Port, "SMTP_CA_FILE=" + m.CAFile,
		"SMTP_USERNAME=tollgate", "SMTP_PASSWORD=the-smtp-password", "SMTP_FROM=tollgate@example.com",
		"PRODUCT_NAME=Example Tools",
	}
}

// listCodeLetters returns the letters with a code, notices left out.
func listCodeLetters(m *mailserver.Server) []mailserver.Letter {
	var list []mailserver.Letter
	for _, l := range m.Letters() {
		if sixDigits.MatchString(l.Subject) {
			list = append(list, l)
		}
	}
	return list
}

// verifyCode sends a code for a challenge.
func verifyCode(t *testing.T, s *fixture.Service, challenge, otp string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, "POST", s.API+"/auth/step-up/verify", map[string]string{
		"challengeId": challenge, "otp": otp,
	})
}

// TestStepUpByEmail makes step-ups with a real mail server that refuses some of the messages.
func TestStepUpByEmail(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		var mu sync.Mutex
		var refusal error
		refuse := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			refusal = err
		}
		mail := mailserver.Start(t,
			mailserver.Options{Username: "tollgate", Password: "the-smtp-password", Refuse: func(string) error {
				mu.Lock()
				defer mu.Unlock()
				return refusal
			}})
		s := e.Start(t, append(mailSettings(mail), "STEP_UP_LIMIT=2")...)
		p := e.NewPerson(t, "ada@example.com")
		p.Login(t, s)
		initiate := func() apiclient.Response {
			return apiclient.Call(t, "POST", s.API+"/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"},
				p.Bearer()...)
		}
		refuse(&smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later"})
		for range 3 { // more than STEP_UP_LIMIT: undelivered codes are not counted
			a := initiate().WantStatus(t, http.StatusServiceUnavailable)
			if strings.Contains(string(a.Body), "challengeId") {
				t.Errorf("a challenge is open although its code was not delivered: %s", a.Body)
			}
		}
		refuse(nil)
		var challenge struct{ ChallengeID string }
		initiate().WantStatus(t, http.StatusOK).Decode(t, &challenge)
		letters := listCodeLetters(mail)
		if len(letters) != 1 || len(letters[0].To) != 1 || letters[0].To[0] != p.Email ||
			letters[0].From != "tollgate@example.com" ||
			!strings.Contains(letters[0].Text, "Example Tools") {
			t.Fatalf("letters %+v", letters)
		}
		first := sixDigits.FindString(letters[0].Text)

		refuse(errors.New("not today"))
		resend := func() apiclient.Response {
			return apiclient.Call(t, "POST", s.API+"/auth/step-up/resend", map[string]string{
				"challengeId": challenge.ChallengeID,
			}, p.Bearer()...)
		}
		resend().WantStatus(t, http.StatusServiceUnavailable)
		// void: a lost code replaced it
		verifyCode(t, s, challenge.ChallengeID, first).WantStatus(t, http.StatusBadRequest)
		refuse(nil)
		initiate().WantStatus(t, http.StatusOK).Decode(t, &challenge)
		letters = listCodeLetters(mail)
		verifyCode(t, s, challenge.ChallengeID, sixDigits.FindString(letters[len(letters)-1].HTML)).WantStatus(t,
			http.StatusOK)
		initiate().WantStatus(t, http.StatusTooManyRequests) // two were delivered
		for _, secret := range []string{"the-smtp-password", first} {
			if strings.Contains(s.Process.Log(), secret) {
				t.Errorf("the log shows %s", secret)
			}
		}
	})
}

// TestMailServerAway checks that the service returns 503 and continues to run when no server
// listens at SMTP_HOST.
func TestMailServerAway(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, mailSettings(&mailserver.Server{Port: "1"})...)
	p := e.NewPerson(t, "ada@example.com")
	p.Login(t, s)
	apiclient.Call(t, "POST", s.API+"/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}, p.Bearer()...).
		WantStatus(t, http.StatusServiceUnavailable)
	apiclient.Call(t, "GET", s.API+"/ready", nil).WantStatus(t, http.StatusOK)
}

// TestStepUpBySMS delivers the code to a gateway with the interface of Twilio.
func TestStepUpBySMS(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		var mu sync.Mutex
		var forms []url.Values
		status := http.StatusCreated
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			body, _ := io.ReadAll(r.Body)           // the test checks the form below
			form, _ := url.ParseQuery(string(body)) // likewise
			account, token, _ := r.BasicAuth()      // likewise
			form.Set("by", account+" "+token+" "+r.URL.Path)
			forms = append(forms, form)
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]any{"sid": "SM1", "status": "queued"}) // the client may ignore it
		}))
		t.Cleanup(gateway.Close)
		s := e.Start(t, "OTP_SMS_PLUGIN=otp-sms", "OTP_SMS_SETTINGS=SMS_GATEWAY_URL: "+gateway.URL+
			"/Accounts/{account}/Messages.json\nSMS_ACCOUNT: AC1\nSMS_TOKEN: the-sms-token\nSMS_FROM: +15550199\n")
		p := e.NewPerson(t, "ada@example.com")
		e.RunCommand(t, "", "user", "set-phone", "--email", p.Email, "--phone", "+15550100")
		p.Login(t, s)
		initiate := func() apiclient.Response {
			return apiclient.Call(t, "POST", s.API+"/auth/step-up/initiate", map[string]string{"method": "SMS_OTP"},
				p.Bearer()...)
		}
		var challenge struct{ ChallengeID string }
		initiate().WantStatus(t, http.StatusOK).Decode(t, &challenge)
		mu.Lock()
		form := forms[len(forms)-1]
		status = http.StatusInternalServerError
		mu.Unlock()
		if form.Get("To") != "+15550100" || form.Get("From") != "+15550199" ||
			form.Get("by") != "AC1 the-sms-token /Accounts/AC1/Messages.json" {
			t.Errorf("the gateway got %v", form)
		}
		verifyCode(t, s, challenge.ChallengeID, sixDigits.FindString(form.Get("Body"))).WantStatus(t, http.StatusOK)
		initiate().WantStatus(t, http.StatusServiceUnavailable)
		if strings.Contains(s.Process.Log(), "the-sms-token") {
			t.Error("the log shows the token")
		}
	})
}
