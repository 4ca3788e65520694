// Package deploy checks the files of the folder deploy, which nothing here can run: each is read by the library or the tool
// that it is for, and held against the settings that the service has.
package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/wiring/settings"
)

const folder = "../../deploy"

// runtimeVariables are read by the Go runtime, not by us.
var runtimeVariables = []string{"GOMEMLIMIT"}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{folder}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// known are the service's settings by name.
func known(t *testing.T) map[string]settings.Variable {
	t.Helper()
	list, err := settings.Describe(nil)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]settings.Variable{}
	for _, v := range list {
		byName[v.Name] = v
	}
	return byName
}

// checkEnvironment wants settings that there are, secrets from files only, and values that the service takes.
func checkEnvironment(t *testing.T, values map[string]string) {
	t.Helper()
	all := known(t)
	var environ []string
	for name, value := range values {
		if secret, ok := strings.CutSuffix(name, "_FILE"); ok && all[secret].Secret {
			continue // the file is not here
		}
		v, ok := all[name]
		if !ok && !slices.Contains(runtimeVariables, name) {
			t.Errorf("%s is no setting", name)
		}
		if v.Secret && strings.ContainsAny(value, "@") {
			t.Errorf("%s is a secret and stands in the open", name)
		}
		environ = append(environ, name+"="+value)
	}
	if _, err := settings.Read(environ); err != nil {
		t.Error(err)
	}
}

// shutdown returns how long the service may take to end with the given settings.
func shutdown(t *testing.T, values map[string]string) time.Duration {
	t.Helper()
	all := known(t)
	var sum time.Duration
	for _, name := range []string{"SHUTDOWN_DRAIN", "SHUTDOWN_TIMEOUT"} {
		text := all[name].Default
		if value, ok := values[name]; ok {
			text = value
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		sum += d
	}
	return sum
}
