package wiring

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// TestChooseCouriers wants a channel without a named plugin to get the one for
// development, where there is one, and a warning only of what is so.
func TestChooseCouriers(t *testing.T) {
	const nobody, written = "cannot be delivered", "written to the log"
	for name, c := range map[string]struct {
		environment, plugins string
		named                settings.Auth
		email, sms           bool
		warns                string
	}{
		"none there":            {settings.Embedded, "", settings.Auth{}, false, false, nobody},
		"development":           {settings.Embedded, "otp-log", settings.Auth{}, true, true, written},
		"one named, alone":      {settings.Embedded, "otp-test", settings.Auth{OTPEmailPlugin: "otp-test"}, true, false, ""},
		"the other named":       {settings.Embedded, "otp-test", settings.Auth{OTPSMSPlugin: "otp-test"}, false, true, ""},
		"one named, both there": {settings.Embedded, "otp-log otp-test", settings.Auth{OTPEmailPlugin: "otp-test"}, true, true, written},
		"both named":            {settings.Embedded, "otp-log otp-test", settings.Auth{OTPEmailPlugin: "otp-test", OTPSMSPlugin: "otp-test"}, true, true, ""},
		"production":            {settings.Production, "otp-log", settings.Auth{}, false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			host, cleanup := pluginsNamed(t, strings.Fields(c.plugins)...)
			defer cleanup()
			log, heard := logtest.NewNullLogger()
			got, err := chooseCouriers(settings.Service{Environment: c.environment}, c.named, Parts{Auth: true}, host, logrus.NewEntry(log))
			if err != nil || (got.Email != nil) != c.email || (got.SMS != nil) != c.sms {
				t.Errorf("e-mail %v, SMS %v (%v)", got.Email, got.SMS, err)
			}
			warned := ""
			for _, entry := range heard.AllEntries() {
				warned += entry.Message
			}
			if (c.warns == "") != (warned == "") || !strings.Contains(warned, c.warns) {
				t.Errorf("warned %q, want %q", warned, c.warns)
			}
		})
	}
}

// TestCouriersOfOtherParts wants no courier's process, and nobody warned of one,
// where nobody signs in.
func TestCouriersOfOtherParts(t *testing.T) {
	host, cleanup := pluginsNamed(t, "otp-log")
	log, heard := logtest.NewNullLogger()
	got, err := chooseCouriers(
		settings.Service{Environment: settings.Embedded}, settings.Auth{OTPSMSPlugin: "otp-log"},
		Parts{Registry: true, Methods: true, RateLimit: true}, host, logrus.NewEntry(log))
	if err != nil || got.Email != nil || got.SMS != nil || len(heard.AllEntries()) > 0 {
		t.Errorf("e-mail %v, SMS %v (%v), told %v", got.Email, got.SMS, err, heard.AllEntries())
	}
	cleanup()
	if state := host.Status()[0].State; state != pluginhost.Idle { // else it is closed now
		t.Errorf("the courier is %s", state)
	}
}

// pluginsNamed returns a host with plugins of these names, which do nothing.
func pluginsNamed(t *testing.T, names ...string) (*pluginhost.Host, func()) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	host, cleanup, err := pluginhost.Open(pluginhost.DefaultConfig(dir), logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	return host, cleanup
}
