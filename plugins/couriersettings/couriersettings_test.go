package couriersettings_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/caarlos0/env/v11"

	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/test/must"
)

// parseSettings parses an environment as a plugin does.
func parseSettings[T any](t *testing.T, environ []string) T {
	t.Helper()
	settings, err := env.ParseAsWithOptions[T](env.Options{Environment: env.ToMap(environ)})
	must.Succeed(t, err)
	return settings
}

// TestPluginReadsTheSettingsOfTheService checks that the plugin reads the same settings that the
// service passed on.
func TestPluginReadsTheSettingsOfTheService(t *testing.T) {
	t.Parallel()
	email := parseSettings[couriersettings.Email](t, []string{
		"SMTP_HOST=h", "SMTP_PORT=2525", "SMTP_TIMEOUT=1m30s", "SMTP_PASSWORD= a=b\n", "PRODUCT_NAME=x y",
	})
	if again := parseSettings[couriersettings.Email](t, email.Environ()); again != email {
		t.Errorf("%+v became %+v", email, again)
	}
	sms := parseSettings[couriersettings.SMS](t, []string{
		"SMS_SUCCESS_STATUSES=200,299", `SMS_HEADERS={"a":"b"}`, "SMS_BODY=To={to}&Body={text}",
	})
	if again := parseSettings[couriersettings.SMS](t, sms.Environ()); !reflect.DeepEqual(again, sms) {
		t.Errorf("%+v became %+v", sms, again)
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
