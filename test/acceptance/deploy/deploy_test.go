// Package deploy checks the files in the folder deploy without running them. Each test parses a
// file with the library or the tool that the file is written for, and compares its values with the
// settings of the service.
package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

const deployFolder = "../../../deploy"

// runtimeVariables are variables that the Go runtime reads; they are not settings of the service.
var runtimeVariables = []string{"GOMEMLIMIT"}

// readDeployFile returns the content of a file in the folder deploy.
func readDeployFile(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{deployFolder}, path...)...))
	must.Succeed(t, err)
	return string(text)
}

// described are the settings of the service.
var described = sync.OnceValues(func() ([]settings.Variable, error) { return settings.Describe(nil) })

// knownSettings returns the settings of the service, and of its couriers, by name.
func knownSettings(t *testing.T) map[string]settings.Variable {
	t.Helper()
	list, err := described()
	must.Succeed(t, err)
	byName := map[string]settings.Variable{}
	for _, v := range list {
		byName[v.Name] = v
	}
	for _, s := range pluginSettings() {
		byName[s.Name] = settings.Variable{Name: s.Name, Secret: s.Secret}
	}
	return byName
}

// pluginSettings returns the settings that the couriers declare, and their documents.
func pluginSettings() []sdk.Setting {
	all := slices.Concat(couriersettings.Declared(couriersettings.Email{}), couriersettings.Declared(couriersettings.SMS{}))
	all = slices.DeleteFunc(all, func(s sdk.Setting) bool { return strings.HasPrefix(s.Name, "P") }) // of the service
	return append(all, sdk.Setting{Name: "OTP_EMAIL_SETTINGS", Secret: true}, sdk.Setting{Name: "OTP_SMS_SETTINGS", Secret: true},
		sdk.Setting{Name: "OTP_LOG_FILE"}, sdk.Setting{Name: "NOTICE_LOG_FILE"})
}

// checkEnvironment reports variables that are not settings, secrets that are not read from files,
// and values that the service does not accept.
func checkEnvironment(t *testing.T, values map[string]string) {
	t.Helper()
	all := knownSettings(t)
	var environ []string
	for name, value := range values {
		if secret, ok := strings.CutSuffix(name, "_FILE"); ok && all[secret].Secret {
			continue // the file exists only where the service runs
		}
		v, ok := all[name]
		if !ok && !slices.Contains(runtimeVariables, name) {
			t.Errorf("%s is not a setting of the service", name)
		}
		if v.Secret && strings.ContainsAny(value, "@") {
			t.Errorf("%s contains a secret: set %s_FILE instead", name, name)
		}
		environ = append(environ, name+"="+value)
	}
	if _, err := settings.Read(environ); err != nil {
		t.Error(err)
	}
}

// shutdownTime returns how long the service may take to shut down with the given settings.
func shutdownTime(t *testing.T, values map[string]string) time.Duration {
	t.Helper()
	all := knownSettings(t)
	var sum time.Duration
	for _, name := range []string{"SHUTDOWN_DRAIN", "SHUTDOWN_TIMEOUT"} {
		text := all[name].Default
		if value, ok := values[name]; ok {
			text = value
		}
		d, err := time.ParseDuration(text)
		must.Succeed(t, err)
		sum += d
	}
	return sum
}
