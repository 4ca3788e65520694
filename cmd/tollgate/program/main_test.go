package program

import (
	"bytes"
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/test/must"
)

// result is the outcome of one run of the program.
type result struct {
	code           int
	stdout, stderr string
}

// runCommand runs the program with its database in dir.
func runCommand(t *testing.T, dir, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), cli.Process{
		Args: args, Environ: []string{"DATA_DIR=" + dir}, Stdin: strings.NewReader(stdin), Stdout: &stdout,
		Stderr: &stderr,
	})
	return result{code, stdout.String(), stderr.String()}
}

// newDatabase returns a folder with a new database.
func newDatabase(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if r := runCommand(t, dir, "", "migrate"); r.code != cli.ExitOK {
		t.Fatalf("migrate: %+v", r)
	}
	return dir
}

// TestWrongUse checks that wrong use of the program prints one sentence that names the error. The
// commands of operators and of people are tested in their packages.
func TestWrongUse(t *testing.T) {
	dir := newDatabase(t)
	for line, names := range map[string]string{
		"nonsense": "nonsense", "registry exprot": "exprot", "usr": ", did you mean user", "help nonsense": "nonsense",
		"help user nonsense": "nonsense", "user nonsense": "nonsense", "serve --only nonsense": "nonsense",
		"ratelimit check " + dir + "/none": dir + "/none", "completion bash more": "use 'tollgate completion bash'",
	} {
		r := runCommand(t, dir, "", strings.Fields(line)...)
		if r.code != cli.ExitFailed || r.stdout != "" || !strings.Contains(r.stderr, names) ||
			strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: %+v, want one sentence that contains %q", line, r, names)
		}
	}
}

// TestInterrupted checks that a signal ends a command that waits for standard input.
func TestInterrupted(t *testing.T) {
	for _, args := range [][]string{
		{"registry", "validate", "-"},
		{"registry", "import", "-"},
		{"methods", "import", "-"},
		{"risk", "replay", "-"},
		{"publish", "-", "--url", "http://localhost:1"},
		{"user", "add", "--email", "a@example.com", "--name", "N", "--password-stdin"},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			reading, writing := io.Pipe()
			defer writing.Close()
			waits := readerFunc(func(b []byte) (int, error) {
				interrupt()
				return reading.Read(b)
			})
			var stderr bytes.Buffer
			code := Run(ctx, cli.Process{
				Args: args, Environ: []string{
					"DATA_DIR=" + newDatabase(t),
					"TOLLGATE_CREDENTIALS=" + filepath.Join(t.TempDir(), "credentials.json"),
				},
				Stdin: waits, Stdout: io.Discard, Stderr: &stderr,
			})
			if text := stderr.String(); code != cli.ExitFailed || !strings.Contains(text, "tollgate: interrupted") ||
				strings.Count(text, "\n") != 1 {
				t.Errorf("exit code %d, %q", code, text)
			}
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestFullDisk checks that a failed write of the output is reported once.
func TestFullDisk(t *testing.T) {
	for _, args := range [][]string{{"audit", "search"}, {"user", "list"}, {"settings"}} {
		var stderr bytes.Buffer
		code := Run(t.Context(), cli.Process{
			Args: args, Environ: []string{"DATA_DIR=" + newDatabase(t)}, Stdin: strings.NewReader(""),
			Stdout: fullDisk{}, Stderr: &stderr,
		})
		if text := stderr.String(); code != cli.ExitFailed || strings.Count(text, syscall.ENOSPC.Error()) != 1 {
			t.Errorf("%v: exit code %d, %q", args, code, text)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestSettings(t *testing.T) {
	dir := t.TempDir()
	if r := runCommand(t, dir, "", "settings"); r.code != cli.ExitOK || !strings.Contains(r.stdout, dir) {
		t.Errorf("settings do not show DATA_DIR: %+v", r)
	}
}

// TestEveryCommandHasAnExample checks that each command has an example that calls it.
func TestEveryCommandHasAnExample(t *testing.T) {
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if c.HasParent() && !strings.Contains(c.Example, "tollgate "+strings.TrimPrefix(c.CommandPath(), "tollgate ")) {
			t.Errorf("%s has the example %q", c.CommandPath(), c.Example)
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(newRoot(cli.Process{}))
}

// TestTakenPort checks that a service that cannot listen exits with one sentence that contains the
// port.
func TestTakenPort(t *testing.T) {
	var listen net.ListenConfig
	taken, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	must.Succeed(t, err)
	for _, name := range []string{"PORT", "RATELIMIT_HTTP_PORT", "GRPC_PORT", "DEBUG_PORT"} {
		environ := []string{"DATA_DIR=" + t.TempDir()}
		for _, other := range []string{"HOST", "RATELIMIT_HTTP_HOST", "GRPC_HOST", "DEBUG_HOST"} {
			environ = append(environ, other+"=127.0.0.1", strings.Replace(other, "HOST", "PORT", 1)+"=0")
		}
		var stdout, stderr bytes.Buffer
		code := Run(t.Context(), cli.Process{
			Args: []string{"serve"}, Environ: append(environ, name+"="+port, "LOG_LEVEL=error"), Stdout: &stdout,
			Stderr: &stderr,
		})
		if code != cli.ExitFailed || !strings.Contains(stderr.String(), port) ||
			strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s taken: code %d, %q", name, code, stderr.String())
		}
	}
}

// TestGroups checks that the help shows each command in its group, and those that belong to none last.
func TestGroups(t *testing.T) {
	help, place := runCommand(t, t.TempDir(), "", "--help").stdout, 0
	for _, text := range []string{
		"\nUse a registry:\n", "  login ", "  server ", "\nOperate:\n", "  access ", "  user ", "\nRun a service:\n", "  serve ",
		"\nCheck files:\n", "  apply ", "\nAdditional Commands:\n", "  version ",
	} {
		n := strings.Index(help[place:], text)
		if n < 0 {
			t.Fatalf("%q is not at its place in\n%s", text, help)
		}
		place += n
	}
}
