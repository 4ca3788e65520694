package couriersettings_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestWrongSettings requires that each wrong setting is an error that begins with its name and
// contains no secret.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	email := map[string]string{"SMTP_HOST": "mail.example.com", "SMTP_FROM": "a@example.com"}
	sms := map[string]string{"SMS_ACCOUNT": "AC1", "SMS_TOKEN": "topsecret"}
	for _, line := range []string{
		"SMTP_HOST=", "SMTP_FROM=nobody", "SMTP_FROM=A <a@example.com>", "SMTP_FROM=", "SMTP_TLS=maybe", "SMTP_TLS=none",
		"SMTP_PORT=70000", "SMTP_PORT=x", "SMTP_USERNAME=u", "SMTP_TIMEOUT=0s", "SMTP_TIMEOUT=8", "SMTP_TIMEOUT=10s",
		"SMTP_CA_FILE=/none", "OTP_EMAIL_TEMPLATES=/none", "SMTP_FROM_NAME=a\nb", "SMTP_HOST=smtp://x",
		"PRODUCT_NAME=a\nb", "SMS_ACCOUNT=", "SMS_ACCOUNT=a:b", "SMS_GATEWAY_URL=http://gateway.example.com",
		"SMS_GATEWAY_URL=https://u:topsecret@g", "SMS_METHOD=GET", "SMS_FORMAT=xml", "SMS_BODY=To=x",
		"SMS_HEADERS=topsecret", `SMS_HEADERS={"a b":"topsecret"}`, `SMS_HEADERS={"authorization":"topsecret"}`,
		`SMS_HEADERS={1: "topsecret"}`, "SMS_SUCCESS_STATUSES=302", "SMS_SUCCESS_STATUSES=[200]", "SMS_TIMEOUT=-1s",
		"SMS_TEMPLATE={{.Cod}}", "SMS_TEMPLATE=no code", "SMS_TIMEOUT=11s",
	} {
		name, value, _ := strings.Cut(line, "=")
		values := map[string]string{name: value, "PLUGIN_CALL_TIMEOUT": "10s"}
		check, others := checkSMS, sms
		if !strings.HasPrefix(name, "SMS_") {
			check, others = checkEmail, email
		}
		must.Succeed(t, check(others))
		for other, value := range others {
			if _, given := values[other]; !given {
				values[other] = value
			}
		}
		if err := check(values); err == nil || !strings.HasPrefix(err.Error(), name+":") ||
			strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%q: %v, want an error that begins with the name and has no secret", line, err)
		}
	}
}

func checkEmail(values map[string]string) error {
	s, err := couriersettings.Parse[couriersettings.Email](values)
	return errors.Join(err, s.CheckSettings())
}

func checkSMS(values map[string]string) error {
	s, err := couriersettings.Parse[couriersettings.SMS](values)
	return errors.Join(err, s.CheckSettings())
}

// TestDeclaredSettings requires that the secrets of both couriers are declared as secrets, so that files
// may have them.
func TestDeclaredSettings(t *testing.T) {
	t.Parallel()
	var secrets []string
	declared := slices.Concat(couriersettings.Declared(couriersettings.Email{}), couriersettings.Declared(couriersettings.SMS{}))
	for _, s := range declared {
		if s.Secret {
			secrets = append(secrets, s.Name)
		}
	}
	if want := []string{"SMTP_PASSWORD", "SMS_TOKEN", "SMS_HEADERS"}; !slices.Equal(secrets, want) || len(declared) != 26 {
		t.Errorf("%d settings with the secrets %q, want %q", len(declared), secrets, want)
	}
}

func TestDefaultPortDependsOnTheSecurity(t *testing.T) {
	t.Parallel()
	for security, want := range map[string]int{"starttls": 587, "tls": 465, "none": 25} {
		if got := (couriersettings.Email{Security: security}).ServerPort(); got != want {
			t.Errorf("port with %s is %d, want %d", security, got, want)
		}
	}
	if got := (couriersettings.Email{Security: "tls", Port: 1465}).ServerPort(); got != 1465 {
		t.Errorf("port is %d, want the 1465 that is set", got)
	}
}

// FuzzRequestBody checks that a body has exactly the configured fields, whatever the recipient and
// the text contain.
func FuzzRequestBody(f *testing.F) {
	f.Add("+15550100", "a&To=b\r\n{from}{to}%41")
	f.Add("{text}", "")
	f.Fuzz(func(t *testing.T, to, text string) {
		for format, wants := range map[string]int{couriersettings.Form: 3, couriersettings.JSON: 3} {
			s := couriersettings.SMS{Format: format, From: "f"}
			body, err := s.RequestBody(to, text)
			must.Succeed(t, err)
			fields := strings.Count(string(body), "&") + 1
			if format == couriersettings.JSON {
				fields = len(members(t, body))
			}
			if fields != wants {
				t.Errorf("%d fields in %s", fields, body)
			}
		}
	})
}

func members(t *testing.T, document []byte) map[string]string {
	t.Helper()
	var all map[string]string
	if err := json.Unmarshal(document, &all); err != nil {
		t.Fatalf("%v: %s", err, document)
	}
	return all
}
