package docs

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	root = "../.."
	// reportsBefore is how long before the end of the tests a block that does not end is reported.
	reportsBefore = 20 * time.Second
)

var (
	// startsService matches a command that starts a service on the usual ports, and startsOther also
	// one that starts a second service.
	startsService = regexp.MustCompile(`(?m)(make run|tollgate serve|tollgate ratelimit)$`)
	startsOther   = regexp.MustCompile(`(?m)(make run|tollgate (serve|ratelimit)( .*)?)$`)
	runsSource    = regexp.MustCompile(`\bgo( -C \S+)? run `)
)

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
		must.Succeed(t, err)
		pages = append(pages, found...)
	}
	for _, path := range pages {
		content, err := os.ReadFile(path)
		must.Succeed(t, err)
		blocks, err := parsePage(string(content))
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if len(blocks) == 0 {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			runPage(t, built, blocks)
		})
	}
}

// runPage runs the blocks of a page. A page that failed runs again if an hour ended meanwhile: the
// windows of the rate limits in it end with the hour, and the counts begin again.
func runPage(t *testing.T, built string, blocks []block) {
	t.Helper()
	for {
		hour, a := time.Now().Truncate(time.Hour), &attempt{TB: t}
		a.run(func() {
			r := newPageRunner(a, built)
			if end, limited := t.Deadline(); limited {
				stuck := time.AfterFunc(time.Until(end)-reportsBefore, r.shell.kill)
				defer stuck.Stop()
			}
			for _, b := range blocks {
				r.runBlock(b)
			}
		})
		if len(a.failures) == 0 {
			return
		}
		if hour.Equal(time.Now().Truncate(time.Hour)) {
			t.Fatal(strings.Join(a.failures, "\n"))
		}
	}
}

// attempt is one run of a page, whose failures it collects.
type attempt struct {
	testing.TB
	failures []string
}

// run calls f and waits until it has returned or failed.
func (a *attempt) run(f func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	<-ended
}

// Errorf implements testing.TB.
func (a *attempt) Errorf(format string, args ...any) {
	a.failures = append(a.failures, fmt.Sprintf(format, args...))
}

// Fatalf implements testing.TB.
func (a *attempt) Fatalf(format string, args ...any) {
	a.Errorf(format, args...)
	runtime.Goexit()
}

// Fatal implements testing.TB.
func (a *attempt) Fatal(args ...any) { a.Fatalf("%s", fmt.Sprint(args...)) }

// pageRunner runs the blocks of a page.
type pageRunner struct {
	t         testing.TB
	dir       string
	environ   []string
	ports     servicePorts
	shell     *shell
	terminals []*terminal
	service   *terminal // the terminal in which the service runs
}

// servicePorts are the ports of this run, which replace the default ports.
type servicePorts struct{ api, json, grpc, debug, statsd, other string }

func newPageRunner(t testing.TB, built string) *pageRunner {
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
		// Programs that end soon, and what a password costs, are not what a page shows.
		"GOGC=400", "ARGON2_MEMORY_KIB=64", "ARGON2_ITERATIONS=1",
		// On a machine that is busy, what a page does not show must not fail because it takes long.
		"DATABASE_TIMEOUT=30s", "DATABASE_STATEMENT_TIMEOUT=60s", "PLUGIN_CALL_TIMEOUT=60s",
		// Programs without debug information are linked in half the time.
		"GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" '-ldflags=-s -w'"),
	}
	for _, name := range []string{"GOPATH", "GOMODCACHE", "GOCACHE", "GOPROXY", "GOTOOLCHAIN"} {
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
	for _, name := range []string{"docs/examples", "plugins/sdk"} {
		must.Succeed(r.t, os.CopyFS(filepath.Join(r.dir, name), os.DirFS(filepath.Join(root, name))))
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		must.Succeed(r.t, err)
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

// writeFile writes a file in the copy of the project.
func (r *pageRunner) writeFile(name, content string, mode os.FileMode) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	must.Succeed(r.t, os.MkdirAll(filepath.Dir(path), 0o700))
	// Another test may start a process meanwhile. The child would have the file open for writing
	// until its exec, and a program that is open for writing cannot be run ("text file busy").
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	must.Succeed(r.t, os.WriteFile(path, []byte(content), mode))
}

// runBlock runs a block and compares its output with the page.
func (r *pageRunner) runBlock(b block) {
	r.t.Helper()
	// other ports are replaced by the function curl of the prelude
	b.command = strings.NewReplacer("8125", r.ports.statsd, "8090", r.ports.other).Replace(b.command)
	var printed string
	switch {
	case b.file != "":
		r.writeFile(b.file, b.command, 0o600)
	case b.terminal:
		r.startTerminal(b)
	case b.again:
		logs := lateLogs{r.t, func() string { return printed + r.terminalLogs() }}
		await.Until(logs, fmt.Sprintf("line %d: the output of the page", b.line), func() bool {
			printed = r.runCommand(b)
			return !slices.ContainsFunc(b.outputs, func(said expectedOutput) bool {
				return firstMissing(said.text, r.usualPorts(printed)) != ""
			})
		})
		return
	default:
		printed = r.runCommand(b)
	}
	for _, said := range b.outputs {
		r.checkOutput(said, printed)
	}
}

// runCommand runs the command of a block in the shell and returns its output.
func (r *pageRunner) runCommand(b block) string {
	r.t.Helper()
	printed, failed, err := r.shell.run(b.command)
	if err != nil {
		r.t.Fatalf("line %d: %v; the output is:\n%s%s", b.line, err, printed, r.terminalLogs())
	}
	if (len(failed) > 0) != b.fails && !b.again {
		r.t.Errorf("line %d: these commands failed: %q, expected a failure: %v; the output is:\n%s%s", b.line,
			failed, b.fails, printed, r.terminalLogs())
	}
	return printed
}

// startTerminal runs a block in its own terminal. It first builds what the block runs from source,
// which may take long, and stops the previous service if the block starts another on the same
// ports. Then it waits until the new service is healthy.
func (r *pageRunner) startTerminal(b block) {
	r.t.Helper()
	if runsSource.MatchString(b.command) {
		r.runCommand(block{line: b.line, command: runsSource.ReplaceAllString(b.command, "go$1 run -exec true ")})
	}
	isService := startsService.MatchString(b.command)
	if isService && r.service != nil {
		r.service.close()
	}
	term := openTerminal(r.t, r.dir, r.environ, b.command)
	r.terminals = append(r.terminals, term)
	if !startsOther.MatchString(b.command) {
		return
	}
	await.Until(r.t, fmt.Sprintf("line %d: a service that is ready", b.line), func() bool {
		return term.hasEnded() || strings.Contains(term.output(), "tollgate is ready")
	})
	if term.hasEnded() {
		r.t.Fatalf("line %d: the service ended:\n%s", b.line, term.output())
	}
	if !isService {
		return
	}
	r.service = term
	await.Until(r.t, fmt.Sprintf("line %d: a healthy service", b.line), func() bool {
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
	await.Until(lateLogs{r.t, r.terminalLogs},
		fmt.Sprintf("line %d: %q in a terminal; the output of the command is:\n%s", said.line, gap, printed),
		func() bool {
			return slices.ContainsFunc(r.terminals, func(term *terminal) bool {
				return firstMissingLine(said.text, r.usualPorts(term.output())) == ""
			})
		})
}

// lateLogs adds to a fatal failure the logs at its time.
type lateLogs struct {
	testing.TB
	logs func() string
}

// Fatalf implements testing.TB.
func (l lateLogs) Fatalf(format string, args ...any) {
	l.TB.Fatalf("%s", fmt.Sprintf(format, args...)+"\n"+l.logs())
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
