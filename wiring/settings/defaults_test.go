package settings_test

import (
	"reflect"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// TestDefaultsAreThoseOfUseCases requires that the documented defaults are the defaults of the
// core.
func TestDefaultsAreThoseOfUseCases(t *testing.T) {
	s, err := settings.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := settings.SignInConfig(s.Auth), signin.Defaults(); !reflect.DeepEqual(got, want) {
		t.Errorf("sign-in has the defaults\n%+v, want\n%+v", got, want)
	}
	if got, want := settings.StepUpConfig(s.Auth), stepup.Defaults(); got != want {
		t.Errorf("step-up has the defaults %+v, want %+v", got, want)
	}
}

// TestFirstWrongSettingIsReported requires that the same setting is reported each time if several
// are wrong.
func TestFirstWrongSettingIsReported(t *testing.T) {
	environ := []string{
		"REFRESH_TOKEN_TTL=1ms", "REFRESH_TOKEN_MAX_AGE=1ms", "RISK_FAILED_FEW=200", "RISK_FAILED_MANY=200", "WRITE_TIMEOUT=1h",
	}
	_, first := settings.Read(environ)
	if first == nil {
		t.Fatal("wrong settings are accepted")
	}
	for range 20 {
		if _, err := settings.Read(environ); err == nil || err.Error() != first.Error() {
			t.Fatalf("Read = %v, before it was %v", err, first)
		}
	}
}
