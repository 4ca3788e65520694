package settings_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// TestCouriersGetTheirOwnSettings requires that a courier gets its own settings and no others.
func TestCouriersGetTheirOwnSettings(t *testing.T) {
	s, err := settings.Read([]string{
		"OTP_EMAIL_PLUGIN=otp-email", "SMTP_HOST=mail.example.com", "SMTP_FROM=tollgate@example.com",
		"SMTP_USERNAME=u", "SMTP_PASSWORD_FILE=" + file(t, "p 1\n"), "PRODUCT_NAME=Example Tools",
		"OTP_SMS_PLUGIN=otp-sms", "SMS_ACCOUNT=AC1", "SMS_TOKEN=t", "SMS_SUCCESS_STATUSES=201,202",
		"SECRET_KEY=" + strings.Repeat("k", 32),
	})
	if err != nil {
		t.Fatal(err)
	}
	email, sms := s.Plugins.Env["otp-email"], s.Plugins.Env["otp-sms"]
	for _, variable := range []string{
		"SMTP_HOST=mail.example.com", "SMTP_PASSWORD=p 1", "PRODUCT_NAME=Example Tools", "SMTP_TIMEOUT=8s",
		"SMTP_TLS=starttls",
	} {
		if !slices.Contains(email, variable) {
			t.Errorf("otp-email does not get %s: %q", variable, email)
		}
	}
	for _, variable := range []string{"SMS_TOKEN=t", "SMS_SUCCESS_STATUSES=201,202", "PRODUCT_NAME=Example Tools"} {
		if !slices.Contains(sms, variable) {
			t.Errorf("otp-sms does not get %s: %q", variable, sms)
		}
	}
	if all := strings.Join(slices.Concat(email, sms), " "); strings.Contains(all, "SECRET_KEY") ||
		strings.Contains(strings.Join(email, " "), "SMS_") || strings.Contains(strings.Join(sms, " "), "SMTP_") {
		t.Errorf("a courier gets settings of another: %s", all)
	}
	if _, found := s.Plugins.Env["otp-log"]; found {
		t.Error("otp-log gets settings")
	}
}

// TestWrongCouriers requires that each wrong setting of a used courier is an error that begins with
// its name and contains no secret. It is no error if the courier is not used, except for what no
// program can use.
func TestWrongCouriers(t *testing.T) {
	email := []string{"OTP_EMAIL_PLUGIN=otp-email", "SMTP_HOST=mail.example.com", "SMTP_FROM=a@example.com"}
	sms := []string{"OTP_SMS_PLUGIN=otp-sms", "SMS_ACCOUNT=AC1", "SMS_TOKEN=topsecret"}
	for variable, others := range map[string][]string{
		"SMTP_HOST=": email, "SMTP_FROM=nobody": email, "SMTP_FROM=A <a@example.com>": email, "SMTP_TLS=maybe": email,
		"SMTP_TLS=none":   email,
		"SMTP_PORT=70000": email, "SMTP_USERNAME=u": email, "SMTP_TIMEOUT=0s": email, "SMTP_TIMEOUT=10s": email,
		"SMTP_CA_FILE=/none":        email,
		"OTP_EMAIL_TEMPLATES=/none": email, "SMTP_FROM_NAME=a\nb": email, "PRODUCT_NAME=a\nb": email,
		"SMTP_HOST=smtp://x": email,
		"SMS_ACCOUNT=":       sms, "SMS_ACCOUNT=a:b": sms, "SMS_GATEWAY_URL=http://gateway.example.com": sms,
		"SMS_GATEWAY_URL=https://u:topsecret@g": sms,
		"SMS_METHOD=GET":                        sms, "SMS_FORMAT=xml": sms, "SMS_BODY=To=x": sms,
		"SMS_HEADERS=topsecret":                     sms,
		`SMS_HEADERS={"a b":"topsecret"}`:           sms,
		`SMS_HEADERS={"authorization":"topsecret"}`: sms, "SMS_SUCCESS_STATUSES=302": sms, "SMS_TIMEOUT=-1s": sms,
		"SMS_TEMPLATE={{.Cod}}": sms,
		"SMS_TEMPLATE=no code":  sms,
	} {
		name, _, _ := strings.Cut(variable, "=")
		_, err := settings.Read(append(slices.Clone(others), variable))
		switch {
		case err == nil:
			t.Errorf("%q is accepted", variable)
		case !strings.HasPrefix(err.Error(), name+":"):
			t.Errorf("%q: %q does not begin with the name of the variable", variable, err)
		case strings.Contains(err.Error(), "topsecret"):
			t.Errorf("%q: %q shows a secret", variable, err)
		}
		// for any program
		useless := slices.Contains([]string{"SMTP_PORT=70000", "SMTP_TIMEOUT=0s", "SMS_TIMEOUT=-1s"}, variable)
		if _, err := settings.Read([]string{variable}); err != nil && !useless && name != "PRODUCT_NAME" {
			t.Errorf("%q is an error although no plugin uses it: %v", variable, err)
		}
	}
}

// TestSettingsOfUnusedCouriers requires a warning of each courier that is configured and not used.
func TestSettingsOfUnusedCouriers(t *testing.T) {
	s, err := settings.Read([]string{"SMTP_HOST=mail.example.com", "SMS_TOKEN=t", "OTP_LOG_FILE=/tmp/x"})
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(s.Warnings, "\n"); !strings.Contains(all, "SMTP_HOST") ||
		!strings.Contains(all, "SMS_TOKEN") {
		t.Errorf("warnings are %q", all)
	}
	if len(s.Plugins.Env) != 1 || !slices.Equal(s.Plugins.Env["otp-log"], []string{"OTP_LOG_FILE=/tmp/x"}) {
		t.Errorf("plugins get %v", s.Plugins.Env)
	}
}
