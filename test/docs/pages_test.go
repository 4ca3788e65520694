package docs

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
)

const (
	root        = "../.."
	pageTimeout = 2 * time.Minute // for all commands of a page
)

var startsService = regexp.MustCompile(`(?m)(make run|tollgate serve|tollgate ratelimit)$`)

func TestMain(m *testing.M) {
	await.AtOnce("4")
	m.Run()
}

// TestPages runs the commands of every page.
func TestPages(t *testing.T) {
	built := t.TempDir()
	if err := instance.Build(root, built, false, "cmd/tollgate", "cmd/ratelimit-client", "plugins/otp-log",
		"plugins/pkg-npm"); err != nil {
		t.Fatal(err)
	}
	pages := []string{root + "/README.md"}
	for _, pattern := range []string{"/docs/*.md", "/docs/clients/*.md", "/docs/sign-in/*.md"} {
		found, err := filepath.Glob(root + pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, path := range pages {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := parsePage(string(content))
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if len(blocks) == 0 {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			r := newPageRunner(t, built)
			if slices.ContainsFunc(blocks, func(b block) bool { return b.file != "" }) {
				r.copySources()
			}
			for _, b := range blocks {
				r.runBlock(b)
			}
		})
	}
}

// pageRunner runs the blocks of a page.
type pageRunner struct {
	t         *testing.T
	dir       string
	environ   []string
	ports     servicePorts
	shell     *shell
	terminals []*terminal
	service   *terminal // the terminal in which the service runs
}

// servicePorts are the ports of this run, which replace the default ports.
type servicePorts struct{ api, json, grpc, debug, statsd, other string }

func newPageRunner(t *testing.T, built string) *pageRunner {
	t.Helper()
	r := &pageRunner{t: t, dir: t.TempDir(), ports: servicePorts{
		instance.FreePort(), instance.FreePort(), instance.FreePort(), instance.FreePort(), instance.FreePort(),
		instance.FreePort(),
	}}
	r.copyProject(built)
	r.environ = []string{
		"PATH=" + filepath.Join(r.dir, ".shims") + ":" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"TMPDIR=" + os.TempDir(),
		"GRPC_PORT=" + r.ports.grpc, "DEBUG_PORT=" + r.ports.debug, "METRICSD_PORT=" + r.ports.statsd,
		"OTP_LOG_FILE=" + filepath.Join(r.dir, "otp.jsonl"), "SHUTDOWN_DRAIN=0s",
	}
	for _, name := range []string{"GOPATH", "GOMODCACHE", "GOCACHE", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN"} {
		if value, set := os.LookupEnv(name); set {
			r.environ = append(r.environ, name+"="+value)
		}
	}
	r.shell = newShell(t, r.dir, r.environ,
		strings.NewReplacer("API", r.ports.api, "JSON", r.ports.json, "DEBUG", r.ports.debug).Replace(prelude))
	return r
}

// copyProject creates a copy of the project's folder with the files that the pages use.
func (r *pageRunner) copyProject(built string) {
	r.t.Helper()
	if err := os.CopyFS(filepath.Join(r.dir, "docs"), os.DirFS(root+"/docs")); err != nil {
		r.t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			r.t.Fatal(err)
		}
		r.writeFile(name, string(content), 0o600)
	}
	r.writeFile("bin/tollgate", fmt.Sprintf("#!/bin/sh\n"+
		"if [ \"$1\" = ratelimit ]; then export PORT=%s; else export PORT=${PORT-%s} RATELIMIT_HTTP_PORT=%[1]s; fi\n"+
		"exec %[3]s/tollgate \"$@\"\n", r.ports.json, r.ports.api, built), 0o700)
	r.writeFile("bin/ratelimit-client",
		fmt.Sprintf("#!/bin/sh\nexec %s/ratelimit-client -dial_string localhost:%s \"$@\"\n", built,
			r.ports.grpc), 0o700)
	// Does the same as `make run`, but does not build.
	r.writeFile(".shims/make", "#!/bin/sh\n[ \"$*\" = run ] || exit 2\n"+
		"RUNTIME_ROOT=${RUNTIME_ROOT-docs/examples/ratelimit} RUNTIME_WATCH_ROOT=false exec bin/tollgate serve\n",
		0o700)
}

// copySources copies the packages that a plugin in a module of its own imports.
func (r *pageRunner) copySources() {
	r.t.Helper()
	for _, name := range []string{"core", "plugins", "ports"} {
		if err := os.CopyFS(filepath.Join(r.dir, name), os.DirFS(filepath.Join(root, name))); err != nil {
			r.t.Fatal(err)
		}
	}
}

// writeFile writes a file in the copy of the project.
func (r *pageRunner) writeFile(name, content string, mode os.FileMode) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	// Another test may start a process meanwhile. The child would have the file open for writing
	// until its exec, and a program that is open for writing cannot be run ("text file busy").
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		r.t.Fatal(err)
	}
}

// runBlock runs a block and compares its output with the page.
func (r *pageRunner) runBlock(b block) {
	r.t.Helper()
	var printed string
	// other ports are replaced by the function curl of the prelude
	b.command = strings.NewReplacer("8125", r.ports.statsd, "8090", r.ports.other).Replace(b.command)
	switch {
	case b.file != "":
		r.writeFile(b.file, b.command, 0o600)
	case b.terminal:
		r.startTerminal(b)
	default:
		var failed []string
		var err error
		printed, failed, err = r.shell.run(b.command)
		if err != nil {
			r.t.Fatalf("line %d: %v; the output is:\n%s", b.line, err, printed)
		}
		if (len(failed) > 0) != b.fails {
			r.t.Errorf("line %d: these commands failed: %q, expected a failure: %v; the output is:\n%s%s", b.line,
				failed, b.fails, printed, r.terminalLogs())
		}
	}
	for _, said := range b.outputs {
		r.checkOutput(said, printed)
	}
}

// startTerminal runs a block in its own terminal. If the block starts a service, startTerminal
// first stops the previous service, which uses the same ports, and then waits until the new one is
// healthy.
func (r *pageRunner) startTerminal(b block) {
	r.t.Helper()
	isService := startsService.MatchString(b.command)
	if isService && r.service != nil {
		r.service.close()
	}
	term := openTerminal(r.t, r.dir, r.environ, b.command)
	r.terminals = append(r.terminals, term)
	if !isService {
		return
	}
	r.service = term
	r.t.Cleanup(func() {
		if r.t.Failed() {
			r.t.Logf("the output of the service of line %d:\n%s", b.line, term.output())
		}
	})
	await.Until(r.t, "a healthy service", func() bool {
		answer, err := http.Get("http://localhost:" + r.ports.json + "/healthcheck")
		if err != nil {
			return false
		}
		_ = answer.Body.Close() // only the status matters
		return answer.StatusCode == http.StatusOK
	})
}

// checkOutput fails the test unless the expected output is in the output of the last command, or
// appears in a terminal.
func (r *pageRunner) checkOutput(said expectedOutput, printed string) {
	r.t.Helper()
	printed = r.usualPorts(printed)
	gap := firstMissing(said.text, printed)
	if gap == "" {
		return
	}
	if len(r.terminals) == 0 {
		r.t.Errorf("line %d: no output contains %q; the output of the command is:\n%s", said.line, gap, printed)
		return
	}
	await.Until(r.t,
		fmt.Sprintf("line %d: %q in a terminal; the output of the command is:\n%s", said.line, gap, printed),
		func() bool {
			return slices.ContainsFunc(r.terminals, func(term *terminal) bool {
				return firstMissingLine(said.text, r.usualPorts(term.output())) == ""
			})
		})
}

// usualPorts replaces the ports of this run with the default ports that the pages show.
func (r *pageRunner) usualPorts(s string) string {
	return strings.NewReplacer(":"+r.ports.api, ":3000", ":"+r.ports.json, ":8080", ":"+r.ports.grpc, ":8081",
		":"+r.ports.debug, ":6070", ":"+r.ports.other, ":8090").Replace(s)
}

// terminalLogs returns the output of all terminals.
func (r *pageRunner) terminalLogs() string {
	var all strings.Builder
	for i, term := range r.terminals {
		fmt.Fprintf(&all, "terminal %d:\n%s", i+1, term.output())
	}
	return all.String()
}
