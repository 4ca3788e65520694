package settings_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// TestVariablesOfPlugins requires that a plugin gets variables and files of the environment, but not
// those that the service reads, whichever part runs.
func TestVariablesOfPlugins(t *testing.T) {
	for _, parts := range [][]string{nil, {"registry"}} {
		s, err := settings.ReadParts([]string{
			"SMTP_HOST=mail.example.com", "SMTP_PASSWORD_FILE=" + file(t, "p w\n"), "OTP_OUTBOX_TOKEN_FILE=/missing",
			"SMS_TOKEN=a", "SMS_TOKEN_FILE=/b", "SECRET_KEY=" + strings.Repeat("k", 32), "DATABASE_URL_FILE=" + file(t, ""),
			"OTP_EMAIL_PLUGIN=otp-email", "PRODUCT_NAME=Example Tools", "SMTP_FROM=",
		}, parts)
		must.Succeed(t, err)
		for name, want := range map[string]string{
			"SMTP_HOST": "mail.example.com", "SMTP_PASSWORD": "p w", "SMTP_FROM": "", "SMTP_TLS": "",
		} {
			if got, err := s.Plugins.Variable(name, name == "SMTP_PASSWORD"); err != nil || got != want {
				t.Errorf("%s is %q (%v), want %q", name, got, err, want)
			}
		}
		for name, want := range map[string]string{
			"OTP_OUTBOX_TOKEN": "OTP_OUTBOX_TOKEN_FILE: ", "SMS_TOKEN": "SMS_TOKEN and SMS_TOKEN_FILE are both set",
			"SECRET_KEY": "SECRET_KEY: it is a setting of the service", "DATABASE_URL": "DATABASE_URL: ",
			"DATABASE_URL_FILE": "DATABASE_URL_FILE: ", "OTP_EMAIL_PLUGIN": "OTP_EMAIL_PLUGIN: ",
		} {
			for _, secret := range []bool{true, false} {
				got, err := s.Plugins.Variable(name, secret)
				if isOwn := name == "OTP_OUTBOX_TOKEN" || name == "SMS_TOKEN"; isOwn && !secret {
					continue
				}
				if err == nil || !strings.HasPrefix(err.Error(), want) || got != "" {
					t.Errorf("%s is %q (%v), want %s", name, got, err, want)
				}
			}
		}
		if s.Plugins.Shared["PLUGIN_CALL_TIMEOUT"] != "10s" || len(s.Plugins.Shared) != 2 ||
			parts == nil && s.Plugins.Shared["PRODUCT_NAME"] != "Example Tools" {
			t.Errorf("plugins share %v", s.Plugins.Shared)
		}
	}
	if _, err := settings.Read([]string{"PRODUCT_NAME=a\nb"}); err == nil || !strings.HasPrefix(err.Error(), "PRODUCT_NAME:") {
		t.Errorf("a name of two lines: %v", err)
	}
}

// TestOldVariables requires that a variable that is no setting any more refuses the start and names
// what replaces it, where its part runs.
func TestOldVariables(t *testing.T) {
	_, err := settings.Read([]string{"MFA_ISSUER=x", "PASSWORD_QUEUE=1"})
	for _, want := range []string{
		"MFA_ISSUER is no setting any more: set PRODUCT_NAME", "PASSWORD_QUEUE is no setting any more: 128",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if _, err := settings.ReadParts([]string{"MFA_ISSUER=x"}, []string{"registry"}); err != nil {
		t.Errorf("without authentication: %v", err)
	}
}
