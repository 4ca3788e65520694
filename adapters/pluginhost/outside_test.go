package pluginhost_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/courier/couriertest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestPluginOfAnotherModule builds a plugin outside of the source tree, in a module that requires
// the SDK only, and runs it with the host.
func TestPluginOfAnotherModule(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	listed := buildOutside(t, filepath.Join(dir, "otp-outside"))
	for line := range strings.Lines(listed) {
		if strings.HasPrefix(line, "github.com/tollgate-dev/tollgate ") {
			t.Errorf("the SDK requires the module of the service:\n%s", listed)
		}
	}
	cfg := quickConfig(dir)
	couriertest.Run(t, func(t *testing.T) couriertest.Subject {
		c, err := openHost(t, cfg, discardLog()).Courier("otp-outside")
		must.Succeed(t, err)
		return couriertest.Subject{Courier: c, Channels: []courier.Channel{courier.SMS}}
	})
}

// buildOutside builds testdata/outside as the author of a plugin does, and returns the modules that
// the plugin needs, one on each line.
func buildOutside(t *testing.T, binary string) (modules string) {
	t.Helper()
	folder := t.TempDir()
	copyFile(t, "testdata/outside/main.go", filepath.Join(folder, "main.go"))
	sdk, err := filepath.Abs("../../plugins/sdk")
	must.Succeed(t, err)
	copyFile(t, filepath.Join(sdk, "go.sum"), filepath.Join(folder, "go.sum"))
	const name = "github.com/tollgate-dev/tollgate/plugins/sdk"
	runGo(t, folder, "mod", "init", "example.com/outside")
	runGo(t, folder, "mod", "edit", "-require="+name+"@v0.0.0", "-replace="+name+"="+sdk)
	runGo(t, folder, "build", "-mod=mod", "-o", binary, ".")
	return runGo(t, folder, "list", "-m", "all")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(to, text, 0o600))
}

func runGo(t *testing.T, folder string, args ...string) string {
	t.Helper()
	command := exec.Command("go", args...)
	command.Dir = folder
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
