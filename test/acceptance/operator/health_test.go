package operator

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// runHealth runs the health command with the settings of an instance and its port.
func runHealth(t *testing.T, i *instance.Instance, environ []string, args ...string) (code int, told string) {
	t.Helper()
	_, port, err := net.SplitHostPort(i.API)
	must.Succeed(t, err)
	cmd := exec.Command(filepath.Join(fixture.BinDir, "tollgate"), append([]string{"health"}, args...)...)
	cmd.Env = append(append([]string{}, environ...), "PORT="+port)
	out, _ := cmd.CombinedOutput() // the caller checks the exit code
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestHealthCommand checks an instance over TLS, by its settings and by its URL, while it serves,
// while it drains and after its end.
func TestHealthCommand(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	files := fixture.NewTLSFiles(e.Dir)
	authority := testcert.NewAuthority(t)
	files.Write(t, authority)
	environ := append(append(e.Environ, files.Environ()...), "SHUTDOWN_DRAIN=10m")
	i, err := instance.Start(filepath.Join(fixture.BinDir, "tollgate"), environ, "serve")
	must.Succeed(t, err)
	defer i.Kill()
	if code, told := runHealth(t, i, environ); code != 0 || told != "https://"+i.API+"/ready is ready\n" {
		t.Errorf("while it serves: code %d, %q", code, told)
	}
	if code, told := runHealth(t, i, environ, "--url", "https://"+i.API, "--ca-cert", authority.CertFile); code != 1 ||
		!strings.Contains(told, "certificate") {
		t.Errorf("by a name that the certificate does not bear: code %d, %q", code, told)
	}
	must.Succeed(t, syscall.Kill(i.PID(), syscall.SIGTERM))
	await.Until(t, "the answer of an instance that drains", func() bool {
		code, told := runHealth(t, i, environ)
		return code == 1 && strings.HasSuffix(told, "/ready is not ready: it is terminating\n")
	})
	i.Kill()
	if code, told := runHealth(t, i, environ); code != 1 || !strings.Contains(told, "does not answer: ") ||
		strings.Count(told, "\n") != 1 {
		t.Errorf("when it is gone: code %d, %q", code, told)
	}
}
