package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

var setting = regexp.MustCompile(`^(#?)([A-Z][A-Z0-9_]+)=(.+)$`)

// TestProductionExample checks that each line of the example is a setting with a value that the
// service accepts and a comment above it, that secrets are files, and that the unit of systemd
// waits for the end of its shutdown.
func TestProductionExample(t *testing.T) {
	text, err := os.ReadFile("../../../docs/examples/production/tollgate.env")
	must.Succeed(t, err)
	values, optional := map[string]string{}, map[string]string{}
	commented := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		found := setting.FindStringSubmatch(line)
		switch {
		case found == nil && line != "" && !strings.HasPrefix(line, "# "):
			t.Errorf("%q is no setting and no comment", line)
		case found != nil && !commented:
			t.Errorf("%s has no comment above it", line)
		case found != nil && strings.HasPrefix(found[2], "TLS_"): // in place of the proxy
			optional[found[2]] = found[3]
		case found != nil:
			value := strings.Trim(found[3], `"`)
			optional[found[2]] = value
			if found[1] == "" {
				values[found[2]] = value
			}
		}
		commented = strings.HasPrefix(line, "# ")
	}
	for _, list := range []map[string]string{values, optional} {
		delete(list, "OTP_EMAIL_PLUGIN") // it needs the file with its settings; package console starts it
	}
	checkEnvironment(t, values)
	checkEnvironment(t, optional)
	all := knownSettings(t)
	for name, value := range optional {
		if all[name].Secret && value != "valkey.example.com:6379" {
			t.Errorf("%s is a secret in the example: set %s_FILE", name, name)
		}
	}
	for _, name := range []string{"DATABASE_URL_FILE", "SECRET_KEY_FILE", "KVSTORE_AUTH_FILE", "SMTP_PASSWORD_FILE", "SIGNING_KEYS_DIR"} {
		if !strings.HasPrefix(values[name], "/etc/tollgate/secrets/") {
			t.Errorf("%s is %q, and not below the folder of secrets", name, values[name])
		}
	}
	if stop := readUnit(t)["TimeoutStopSec"]; shutdownTime(t, values).String() != "40s" || stop[0] != "45s" {
		t.Errorf("a shutdown takes %v, and systemd waits for %v", shutdownTime(t, values), stop)
	}
}

// TestPackageSettings checks that the service accepts the settings that the packages install, also
// those that are comments, once people remove their signs.
func TestPackageSettings(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/packages/tollgate.env")
	must.Succeed(t, err)
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if found := setting.FindStringSubmatch(strings.TrimSuffix(line, "\n")); found != nil {
			values[found[2]] = found[3]
		}
	}
	if values["TRUSTED_PROXIES"] == "" {
		t.Errorf("found the settings %v, want TRUSTED_PROXIES among them", values)
	}
	delete(values, "OTP_EMAIL_PLUGIN") // it needs the file with its settings
	checkEnvironment(t, values)
}
