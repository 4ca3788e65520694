package console

import (
	"bufio"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestConsoleAlone checks that the pages run without sign-in, and not without the registry.
func TestConsoleAlone(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	process, err := instance.Start(filepath.Join(fixture.BinDir, "tollgate"), e.Environ, "serve", "--only",
		"registry,console")
	must.Succeed(t, err)
	t.Cleanup(process.Kill)
	alone := newBrowser(t, &fixture.Service{T: t, API: "http://" + process.API})
	alone.Open("/console/", http.StatusOK).WantNoText("Sign in", "Publish")
	alone.Open("/console/connect", http.StatusOK)
	alone.Open("/console/sign-in", http.StatusNotFound)
	if _, stderr, code := e.TryCommand(t, "", "serve", "--only", "console"); code == 0 ||
		!strings.Contains(stderr, "--only: the part console needs the part registry") {
		t.Errorf("the console without the registry: %d, %s", code, stderr)
	}
}

// TestAddressAtTheStart checks that the log names the address of the console at a terminal, and
// only there.
func TestAddressAtTheStart(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	cmd := exec.Command(filepath.Join(fixture.BinDir, "tollgate"), "serve")
	cmd.Env = e.Environ
	terminal, err := pty.Start(cmd)
	must.Succeed(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it is alive until now
		_ = cmd.Wait()         // it was killed
		terminal.Close()
	})
	lines := bufio.NewScanner(terminal)
	address := regexp.MustCompile(`http://localhost:\d+/console/`)
	found := ""
	for found == "" && lines.Scan() {
		if strings.Contains(lines.Text(), "tollgate is ready") {
			found = address.FindString(lines.Text())
			if found == "" {
				t.Fatalf("the log does not name the console: %s", lines.Text())
			}
		}
	}
	b := newBrowser(t, &fixture.Service{T: t, API: strings.TrimSuffix(found, "/console/")})
	b.Open("/console/", http.StatusOK)
	s := e.Start(t, "DATA_DIR="+t.TempDir())
	s.Stop()
	if strings.Contains(s.Process.Log(), "console=") {
		t.Errorf("without a terminal the log names the console:\n%s", s.Process.Log())
	}
}

// TestSessionsEndTogether checks that the cookie is the same session as that of the API: it ends
// with it, on each instance. The pages of operators show all instances.
func TestSessionsEndTogether(t *testing.T) {
	t.Parallel()
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		one, other := e.Start(t), e.Start(t)
		ada := e.NewWriter(t, one, "ada@example.com", "operate *")
		b, elsewhere := newBrowser(t, one), newBrowser(t, other)
		b.SignIn(ada.Email, fixture.Password)
		elsewhere.Client.Jar = b.Client.Jar // cookies do not depend on the port
		elsewhere.Open("/console/account", http.StatusOK).WantPath("/console/account")

		b.Open("/console/step-up?next=/console/account", http.StatusOK)
		b.Verify(e, ada.Email, http.StatusOK)
		b.WantPath("/console/account").WantText("Full trust.", "Full trust A code was entered.")
		elsewhere.Open("/console/account", http.StatusOK).WantText("Full trust.")
		if e.Shared { // the database knows who is connected
			b.Open("/console/operator", http.StatusOK).WantText("All instances")
			b.Open("/console/account", http.StatusOK)
		}

		var listed struct{ Sessions []struct{ ID string } }
		apiclient.Call(t, "GET", one.API+"/sessions", nil, ada.Bearer()...).WantStatus(t, http.StatusOK).
			Decode(t, &listed)
		own, _ := fixture.ReadSession(t, one, ada)
		for _, session := range listed.Sessions {
			if session.ID != own {
				apiclient.Call(t, "DELETE", one.API+"/sessions/"+session.ID, nil, ada.Bearer()...).WantStatus(t,
					http.StatusOK)
			}
		}
		b.Open("/console/account", http.StatusOK).WantPath("/console/sign-in?next=%2Fconsole%2Faccount")
	})
}
