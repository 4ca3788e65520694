package settings_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// TestCouriersGetTheirOwnSettings requires that a courier gets its own settings and no others, as
// they are written.
func TestCouriersGetTheirOwnSettings(t *testing.T) {
	s, err := settings.Read([]string{
		"OTP_EMAIL_PLUGIN=otp-email", "OTP_EMAIL_SETTINGS_FILE=" + file(t, "SMTP_HOST: mail.example.com\n"+
			"SMTP_FROM: tollgate@example.com\nSMTP_USERNAME: 010\nSMTP_PASSWORD: p 1\nSMTP_CA_FILE:\n"),
		"PRODUCT_NAME=Example Tools", "OTP_SMS_PLUGIN=otp-sms",
		"OTP_SMS_SETTINGS={SMS_ACCOUNT: AC1, SMS_TOKEN: t, SMS_FROM: +15550199, SMS_SUCCESS_STATUSES: '201,202', " +
			`SMS_HEADERS: {"X-Api-Key": "k"}, SMS_FORMAT: json, SMS_BODY: {to: "{to}", n: 1, text: "{text}"}}`,
		"SECRET_KEY=" + strings.Repeat("k", 32), "SMTP_PORT=tcp://10.0.0.1:25",
	})
	must.Succeed(t, err)
	email, sms := s.Plugins.Env["otp-email"], s.Plugins.Env["otp-sms"]
	slices.Sort(email)
	slices.Sort(sms)
	if want := []string{
		"PRODUCT_NAME=Example Tools", "SMTP_FROM=tollgate@example.com", "SMTP_HOST=mail.example.com",
		"SMTP_PASSWORD=p 1", "SMTP_TIMEOUT=8s", "SMTP_TLS=starttls", "SMTP_USERNAME=010",
	}; !slices.Equal(email, want) {
		t.Errorf("otp-email gets %q, want %q", email, want)
	}
	if want := []string{
		"PRODUCT_NAME=Example Tools", "SMS_ACCOUNT=AC1", `SMS_BODY={"n":1,"text":"{text}","to":"{to}"}`,
		"SMS_FORMAT=json", "SMS_FROM=+15550199",
		"SMS_GATEWAY_URL=https://api.twilio.com/2010-04-01/Accounts/{account}/Messages.json",
		`SMS_HEADERS={"X-Api-Key":"k"}`, "SMS_METHOD=POST", "SMS_SUCCESS_STATUSES=201,202", "SMS_TIMEOUT=8s", "SMS_TOKEN=t",
	}; !slices.Equal(sms, want) {
		t.Errorf("otp-sms gets %q, want %q", sms, want)
	}
	if _, found := s.Plugins.Env["otp-log"]; found {
		t.Error("otp-log gets settings")
	}
}

// TestWrongCouriers requires that each wrong setting of a used courier is an error that begins with
// the variable and the key and contains no secret. It is no error if the courier is not used.
func TestWrongCouriers(t *testing.T) {
	email := []string{
		"OTP_EMAIL_PLUGIN=otp-email", "OTP_EMAIL_SETTINGS=SMTP_HOST: mail.example.com\nSMTP_FROM: a@example.com\n",
	}
	sms := []string{"OTP_SMS_PLUGIN=otp-sms", "OTP_SMS_SETTINGS=SMS_ACCOUNT: AC1\nSMS_TOKEN: topsecret\n"}
	for line, others := range map[string][]string{
		"SMTP_HOST: ": email, "SMTP_FROM: nobody": email, "SMTP_FROM: A <a@example.com>": email,
		"SMTP_TLS: maybe": email, "SMTP_TLS: none": email, "SMTP_PORT: 70000": email, "SMTP_PORT: x": email,
		"SMTP_USERNAME: u": email, "SMTP_TIMEOUT: 0s": email, "SMTP_TIMEOUT: 8": email,
		"SMTP_CA_FILE: /none": email, "OTP_EMAIL_TEMPLATES: /none": email, `SMTP_FROM_NAME: "a\nb"`: email,
		"SMTP_HOST: smtp://x": email, "SMTP_HOTS: x": email, "SMS_TOKEN: x": email, "PRODUCT_NAME: x": email,
		"SMS_ACCOUNT: ": sms, "SMS_ACCOUNT: a:b": sms, "SMS_GATEWAY_URL: http://gateway.example.com": sms,
		"SMS_GATEWAY_URL: https://u:topsecret@g": sms, "SMS_METHOD: GET": sms, "SMS_FORMAT: xml": sms,
		"SMS_BODY: To=x": sms, "SMS_HEADERS: topsecret": sms, `SMS_HEADERS: {"a b":"topsecret"}`: sms,
		`SMS_HEADERS: {"authorization":"topsecret"}`: sms, `SMS_HEADERS: {1: "topsecret"}`: sms,
		"SMS_SUCCESS_STATUSES: 302": sms, "SMS_SUCCESS_STATUSES: [200]": sms, "SMS_TIMEOUT: -1s": sms,
		"SMS_TEMPLATE: '{{.Cod}}'": sms, "SMS_TEMPLATE: no code": sms,
	} {
		key, _, _ := strings.Cut(line, ":")
		variable, document, _ := strings.Cut(others[1], "=")
		var kept []string
		for earlier := range strings.Lines(document) {
			if !strings.HasPrefix(earlier, key+":") {
				kept = append(kept, earlier)
			}
		}
		document = variable + "=" + strings.Join(kept, "") + line + "\n"
		_, err := settings.Read([]string{others[0], document})
		switch {
		case err == nil:
			t.Errorf("%q is accepted", line)
		case !strings.HasPrefix(err.Error(), variable+": "+key+":"):
			t.Errorf("%q: %q does not begin with the names of the variable and the key", line, err)
		case strings.Contains(err.Error(), "topsecret"):
			t.Errorf("%q: %q shows a secret", line, err)
		}
		if _, err := settings.Read([]string{document}); err != nil {
			t.Errorf("%q is an error although no plugin uses it: %v", line, err)
		}
	}
	for _, environ := range [][]string{
		{"OTP_EMAIL_PLUGIN=otp-email"},
		{"OTP_EMAIL_PLUGIN=otp-email", "OTP_EMAIL_SETTINGS=topsecret"},
		append(slices.Clone(email), "PLUGIN_CALL_TIMEOUT=8s"),
	} {
		if _, err := settings.Read(environ); err == nil || !strings.HasPrefix(err.Error(), "OTP_EMAIL_SETTINGS: ") ||
			strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%q: %v", environ, err)
		}
	}
	if _, err := settings.Read([]string{"PRODUCT_NAME=a\nb"}); err == nil ||
		!strings.HasPrefix(err.Error(), "PRODUCT_NAME:") {
		t.Errorf("a name of two lines: %v", err)
	}
}

// TestSettingsOfUnusedCouriers requires a warning of each courier that is configured and not used.
func TestSettingsOfUnusedCouriers(t *testing.T) {
	s, err := settings.Read([]string{
		"OTP_EMAIL_SETTINGS={SMTP_HOST: mail.example.com}", "OTP_SMS_SETTINGS={SMS_TOKEN: t}", "OTP_LOG_FILE=/tmp/x",
	})
	must.Succeed(t, err)
	if all := strings.Join(s.Warnings, "\n"); !strings.Contains(all, "OTP_EMAIL_SETTINGS") ||
		!strings.Contains(all, "OTP_SMS_SETTINGS") {
		t.Errorf("warnings are %q", all)
	}
	if len(s.Plugins.Env) != 1 || !slices.Equal(s.Plugins.Env["otp-log"], []string{"OTP_LOG_FILE=/tmp/x"}) {
		t.Errorf("plugins get %v", s.Plugins.Env)
	}
}

// TestOldVariablesOfCouriers requires that a variable of the time before the documents refuses the
// start and names what replaces it, where authentication runs.
func TestOldVariablesOfCouriers(t *testing.T) {
	environ := []string{"SMTP_HOST=mail", "SMS_TOKEN_FILE=/run/secrets/sms", "PASSWORD_QUEUE=1"}
	_, err := settings.Read(environ)
	for _, want := range []string{
		"SMTP_HOST is no setting any more: set it in the YAML of OTP_EMAIL_SETTINGS",
		"SMS_TOKEN_FILE is no setting any more: set SMS_TOKEN in the YAML of OTP_SMS_SETTINGS",
		"PASSWORD_QUEUE is no setting any more: 128",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if _, err := settings.ReadParts(environ[:2], []string{"registry"}); err != nil {
		t.Errorf("without authentication: %v", err)
	}
}
