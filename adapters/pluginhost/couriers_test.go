package pluginhost_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestCouriers requires that a channel without a named plugin gets the one for development, if that
// is allowed and exists, and that each warning is true.
func TestCouriers(t *testing.T) {
	const undelivered, logged = "cannot be delivered", "written to the log"
	for name, c := range map[string]struct {
		plugins    string
		config     pluginhost.CourierConfig
		email, sms bool
		warning    string
	}{
		"there is no plugin":           {"", pluginhost.CourierConfig{Development: true}, false, false, undelivered},
		"there is one for development": {"otp-log", pluginhost.CourierConfig{Development: true}, true, true, logged},
		"only e-mail is set": {
			"otp-test", pluginhost.CourierConfig{Email: "otp-test", Development: true}, true, false, "",
		},
		"only SMS is set": {
			"otp-test", pluginhost.CourierConfig{SMS: "otp-test", Development: true}, false, true, "",
		},
		"e-mail is set, otp-log is there": {
			"otp-log otp-test", pluginhost.CourierConfig{Email: "otp-test", Development: true}, true, true, logged,
		},
		"both are set": {
			"otp-log otp-test", pluginhost.CourierConfig{Email: "otp-test", SMS: "otp-test", Development: true},
			true, true, "",
		},
		"development is not allowed": {"otp-log", pluginhost.CourierConfig{}, false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			host := hostWithEmptyPlugins(t, strings.Fields(c.plugins)...)
			log, hook := logtest.NewNullLogger()
			got, err := host.Couriers(c.config, logrus.NewEntry(log))
			if err != nil || (got.Email != nil) != c.email || (got.SMS != nil) != c.sms {
				t.Errorf("Couriers = %v, %v (%v)", got.Email, got.SMS, err)
			}
			warned := ""
			for _, entry := range hook.AllEntries() {
				warned += entry.Message
			}
			if (c.warning == "") != (warned == "") || !strings.Contains(warned, c.warning) {
				t.Errorf("the warning is %q, want %q", warned, c.warning)
			}
		})
	}
}

func TestCouriersNamesSettingOfUnknownPlugin(t *testing.T) {
	host := hostWithEmptyPlugins(t, "otp-test")
	log, _ := logtest.NewNullLogger()
	for setting, c := range map[string]pluginhost.CourierConfig{
		"OTP_EMAIL_PLUGIN": {Email: "otp-missing", SMS: "otp-test"},
		"OTP_SMS_PLUGIN":   {Email: "otp-test", SMS: "otp-missing"},
	} {
		if _, err := host.Couriers(c, logrus.NewEntry(log)); err == nil ||
			!strings.HasPrefix(err.Error(), setting+": ") {
			t.Errorf("Couriers = %v, want an error of %s", err, setting)
		}
	}
}

// hostWithEmptyPlugins returns a host of plugins with these names that do not start.
func hostWithEmptyPlugins(t *testing.T, names ...string) *pluginhost.Host {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), nil, 0o700))
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	host, cleanup, err := pluginhost.Open(pluginhost.Config{Dir: dir, CallTimeout: 10 * time.Second}, logrus.NewEntry(log))
	must.Succeed(t, err)
	t.Cleanup(cleanup)
	return host
}
