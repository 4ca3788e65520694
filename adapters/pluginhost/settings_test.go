package pluginhost_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/courier/couriertest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// environmentOf returns the function of a configuration for an environment, in which DATABASE_URL and
// OTP_TEST_PLUGIN are settings of the service. What begins with FILE is the content of a file.
func environmentOf(environ map[string]string) func(string, bool) (string, error) {
	return func(name string, secret bool) (string, error) {
		if name == "DATABASE_URL" || name == "OTP_TEST_PLUGIN" {
			return "", errors.New(name + ": it is a setting of the service")
		}
		if file := environ[name+"_FILE"]; secret && file != "" {
			return file, nil
		}
		return environ[name], nil
	}
}

// secrets is an environment with secrets that are not those of otp-test.
func secrets(more map[string]string) map[string]string {
	environ := map[string]string{
		"DATABASE_URL": "secret", "SECRET_KEY": "secret", "AWS_SECRET_ACCESS_KEY": "secret", "SMTP_PASSWORD": "secret",
		"SMS_TOKEN": "secret", "OTP_OTHER_TOKEN": "secret", "OTP_TEST_PLUGIN": "secret", "OTP_TEST_MORE_TOKEN": "secret",
		"PATH": "secret", "OTP_TESTER_TOKEN": "secret",
	}
	for name, value := range more {
		environ[name] = value
	}
	return environ
}

// declare returns a host of otp-test with a declaration. It also has a plugin with a longer name.
func declare(t *testing.T, declared string, environ map[string]string) *pluginhost.Host {
	t.Helper()
	return openTestPlugin(t, "settings", "otp-test", func(cfg *pluginhost.Config) {
		writeFile(t, filepath.Join(cfg.Dir, "otp-test-more"), "", 0o700)
		cfg.Env["otp-test"] = append(cfg.Env["otp-test"], "DECLARE="+declared)
		cfg.Variable, cfg.Shared = environmentOf(secrets(environ)), map[string]string{"PRODUCT_NAME": "Example"}
	})
}

// TestSettingsThatAPluginDeclares requires that a plugin gets the values of what it declares, from
// variables, files and a document, and nothing else.
func TestSettingsThatAPluginDeclares(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		declared string
		environ  map[string]string
		want     string // the values, or the error
	}{
		"variables": {
			"OTP_TEST_DIR OTP_TEST_UNSET PRODUCT_NAME", map[string]string{"OTP_TEST_DIR": "/out", "OTP_TEST_HIDDEN": "x"},
			"map[OTP_TEST_DIR:/out PRODUCT_NAME:Example]",
		},
		"a secret in a file": {
			"OTP_TEST_TOKEN! OTP_TEST_DIR", map[string]string{"OTP_TEST_TOKEN_FILE": "t", "OTP_TEST_DIR_FILE": "no"},
			"map[OTP_TEST_TOKEN:t]",
		},
		"a document": {
			"OTP_TEST_DIR OTP_TEST_HEADERS! OTP_TEST_NONE",
			map[string]string{"OTP_TEST_SETTINGS": "OTP_TEST_DIR: 010\nOTP_TEST_HEADERS: {a: 1}\nOTP_TEST_NONE:\n"},
			`map[OTP_TEST_DIR:010 OTP_TEST_HEADERS:{"a":1}]`,
		},
		"a document and variables": {
			"OTP_TEST_DIR OTP_TEST_TOKEN!",
			map[string]string{"OTP_TEST_SETTINGS_FILE": "{OTP_TEST_TOKEN: t}", "OTP_TEST_DIR": "/out"},
			"map[OTP_TEST_DIR:/out OTP_TEST_TOKEN:t]",
		},
		"a port of a platform": {
			"OTP_TEST_PORT", map[string]string{"OTP_TEST_PORT": "tcp://10.0.0.1:25"}, "map[]",
		},
		"a wrong value": {
			"OTP_TEST_DIR", map[string]string{"OTP_TEST_DIR": "wrong"}, "OTP_TEST_DIR: it is wrong",
		},
		"a wrong value of a document": {
			"OTP_TEST_DIR", map[string]string{"OTP_TEST_SETTINGS": "OTP_TEST_DIR: wrong"},
			"OTP_TEST_SETTINGS: OTP_TEST_DIR: it is wrong",
		},
		"twice": {
			"OTP_TEST_DIR", map[string]string{"OTP_TEST_SETTINGS": "OTP_TEST_DIR: a", "OTP_TEST_DIR": "b"},
			"OTP_TEST_DIR: it is set, and in OTP_TEST_SETTINGS too",
		},
		"an unknown key": {
			"OTP_TEST_DIR", map[string]string{"OTP_TEST_SETTINGS": "OTP_TEST_DRI: a"},
			"OTP_TEST_SETTINGS: OTP_TEST_DRI: unknown key",
		},
		"a key of the service": {
			"PRODUCT_NAME", map[string]string{"OTP_TEST_SETTINGS": "PRODUCT_NAME: a"},
			"OTP_TEST_SETTINGS: PRODUCT_NAME: unknown key",
		},
		"no document": {
			"OTP_TEST_DIR", map[string]string{"OTP_TEST_SETTINGS": "topsecret"}, "OTP_TEST_SETTINGS: it is not YAML",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := declare(t, c.declared, c.environ)
			_, err := host.Couriers(pluginhost.CourierConfig{Email: "otp-test"}, discardLog())
			if strings.HasPrefix(c.want, "map[") {
				if got := host.Status()[0]; got.Version != c.want {
					t.Errorf("status %+v (%v), want the values %s", got, err, c.want)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "topsecret") {
				t.Errorf("Couriers = %v, want %s", err, c.want)
			}
		})
	}
}

// TestSettingsOfOthersCannotBeDeclared requires that a plugin that declares what is not its own does
// not run: a setting of the service, of another plugin, or of the machine.
func TestSettingsOfOthersCannotBeDeclared(t *testing.T) {
	t.Parallel()
	for _, declared := range []string{"SMTP_PASSWORD!", "OTP_TEST_PLUGIN", strings.Repeat("OTP_TEST_A ", 65)} {
		c, err := declare(t, "OTP_TEST_OWN "+declared, map[string]string{"OTP_TEST_OWN": "x"}).Courier("otp-test")
		must.Succeed(t, err)
		err = c.Deliver(t.Context(), couriertest.Code(courier.Email, "1"))
		if name := strings.Fields(strings.TrimSuffix(declared, "!"))[0]; err == nil || strings.Contains(err.Error(), "secret") ||
			!strings.Contains(err.Error(), "declares") && !strings.Contains(err.Error(), name+": it is a setting of the service") {
			t.Errorf("%s: %v, want it refused without the value", declared, err)
		}
	}
}

// TestPluginsBeforeSettings requires that a plugin of the first version of the protocol runs with the
// variables that the manifest gives it, and one with settings too.
func TestPluginsBeforeSettings(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{"courier": "1.2.3", "settings": "map[OTP_TEST_DIR:manifest]"} {
		host := openTestPlugin(t, mode, "otp-test", func(cfg *pluginhost.Config) {
			writeFile(t, filepath.Join(cfg.Dir, "plugins.yaml"),
				"plugins: [{name: otp-test, env: {OTP_TEST_DIR: manifest, DECLARE: OTP_TEST_DIR}}]", 0o644)
			cfg.Variable = environmentOf(map[string]string{"OTP_TEST_DIR": "environment"})
		})
		must.Succeed(t, host.StartAll(t.Context()))
		if got := onlyStatus(t, host); got.State != pluginhost.Running || got.Version != want {
			t.Errorf("%s: %+v, want it running as %s", mode, got, want)
		}
	}
}

// TestChecksHaveSettings requires that a plugin that checks packages may declare settings.
func TestChecksHaveSettings(t *testing.T) {
	t.Parallel()
	host := openTestPlugin(t, "settings of a check", "pkg-test", func(cfg *pluginhost.Config) {
		cfg.Env["pkg-test"] = append(cfg.Env["pkg-test"], "DECLARE=PKG_TEST_DIR")
	})
	must.Succeed(t, host.StartAll(t.Context()))
	if got := onlyStatus(t, host); got.State != pluginhost.Running {
		t.Errorf("status %+v", got)
	}
}

// TestSettingsOfUnusedCouriers requires a warning of each courier with a document that is not used.
func TestSettingsOfUnusedCouriers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"otp-email", "otp-test"} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), nil, 0o700))
	}
	cfg := quickConfig(dir)
	cfg.Variable = environmentOf(map[string]string{"OTP_EMAIL_SETTINGS": "{}", "OTP_TEST_SETTINGS": "{}"})
	log, hook := logtest.NewNullLogger()
	_, err := openHost(t, cfg, discardLog()).Couriers(pluginhost.CourierConfig{SMS: "otp-test"}, logrus.NewEntry(log))
	must.Succeed(t, err)
	if all := hook.AllEntries(); len(all) != 1 || !strings.HasPrefix(all[0].Message, "OTP_EMAIL_SETTINGS is set and not used") {
		t.Errorf("the warnings are %v", all)
	}
}

// TestRealCouriersDeclareTheirSettings starts otp-log with the file of a variable, and otp-email
// without a mail server.
func TestRealCouriersDeclareTheirSettings(t *testing.T) {
	t.Parallel()
	dir, codes := newFolder(t), filepath.Join(t.TempDir(), "codes")
	installPlugin(t, dir, "otp-log", "otp-log")
	installPlugin(t, dir, "otp-email", "otp-email")
	cfg := quickConfig(dir)
	cfg.Variable = environmentOf(map[string]string{"OTP_LOG_FILE": codes, "SMTP_HOST": "mail.example.com"})
	cfg.Shared = map[string]string{"PRODUCT_NAME": "Example", "PLUGIN_CALL_TIMEOUT": "10s"}
	host := openHost(t, cfg, discardLog())
	c, err := host.Couriers(pluginhost.CourierConfig{SMS: "otp-log"}, discardLog())
	must.Succeed(t, err)
	must.Succeed(t, c.SMS.Deliver(t.Context(), couriertest.Code(courier.SMS, "042917")))
	if text, err := os.ReadFile(codes); err != nil || !strings.Contains(string(text), "042917") {
		t.Errorf("the file of codes has %q (%v)", text, err)
	}
	if _, err := host.Couriers(pluginhost.CourierConfig{Email: "otp-email"}, discardLog()); err == nil ||
		!strings.HasPrefix(err.Error(), "SMTP_FROM: ") {
		t.Errorf("Couriers = %v, want an error of SMTP_FROM", err)
	}
}
