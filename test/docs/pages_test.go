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

	"github.com/tollgate-dev/tollgate/test/instance"
)

const (
	root     = "../.."
	patience = 2 * time.Minute  // how long a page may take
	soon     = 30 * time.Second // within which a log says what it is said to
)

var startsService = regexp.MustCompile(`(?m)(make run|tollgate serve|tollgate ratelimit)$`)

// TestPages runs every page that has commands.
func TestPages(t *testing.T) {
	built := t.TempDir()
	if err := instance.Build(root, built, false, "cmd/tollgate", "cmd/ratelimit-client", "plugins/otp-log", "plugins/pkg-npm"); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(pages, root+"/README.md") {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := parse(string(content))
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if len(blocks) == 0 {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			r := newReader(t, built)
			if slices.ContainsFunc(blocks, func(b block) bool { return b.file != "" }) {
				r.copySources()
			}
			for _, b := range blocks {
				r.follow(b)
			}
		})
	}
}

// reader does what a page says.
type reader struct {
	t         *testing.T
	dir       string
	environ   []string
	ports     ports
	shell     *shell
	terminals []*terminal
	service   *terminal // the one of the terminals in which the service runs
}

// ports are where the service listens, in the place of the usual ones.
type ports struct{ api, json, grpc, debug, statsd, other string }

func newReader(t *testing.T, built string) *reader {
	t.Helper()
	r := &reader{t: t, dir: t.TempDir(), ports: ports{
		instance.FreePort(), instance.FreePort(), instance.FreePort(), instance.FreePort(), instance.FreePort(), instance.FreePort(),
	}}
	r.copyProject(built)
	r.environ = []string{
		"PATH=" + filepath.Join(r.dir, ".shims") + ":" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir(),
		"GRPC_PORT=" + r.ports.grpc, "DEBUG_PORT=" + r.ports.debug, "METRICSD_PORT=" + r.ports.statsd,
		"OTP_LOG_FILE=" + filepath.Join(r.dir, "otp.jsonl"), "SHUTDOWN_DRAIN=0s",
	}
	for _, name := range []string{"GOPATH", "GOMODCACHE", "GOCACHE", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN"} {
		if value, set := os.LookupEnv(name); set {
			r.environ = append(r.environ, name+"="+value)
		}
	}
	r.shell = newShell(t, r.dir, r.environ, strings.NewReplacer("API", r.ports.api, "JSON", r.ports.json, "DEBUG", r.ports.debug).Replace(prelude))
	return r
}

// copyProject makes what the pages use of the folder of the project.
func (r *reader) copyProject(built string) {
	r.t.Helper()
	if err := os.CopyFS(filepath.Join(r.dir, "docs"), os.DirFS(root+"/docs")); err != nil {
		r.t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			r.t.Fatal(err)
		}
		r.write(name, string(content), 0o600)
	}
	r.write("bin/tollgate", fmt.Sprintf("#!/bin/sh\n"+
		"if [ \"$1\" = ratelimit ]; then export PORT=%s; else export PORT=%s RATELIMIT_HTTP_PORT=%[1]s; fi\n"+
		"exec %[3]s/tollgate \"$@\"\n", r.ports.json, r.ports.api, built), 0o700)
	r.write("bin/ratelimit-client", fmt.Sprintf("#!/bin/sh\nexec %s/ratelimit-client -dial_string localhost:%s \"$@\"\n", built, r.ports.grpc), 0o700)
	// What `make run` does, without the building.
	r.write(".shims/make", "#!/bin/sh\n[ \"$*\" = run ] || exit 2\n"+
		"RUNTIME_ROOT=${RUNTIME_ROOT-docs/examples/ratelimit} RUNTIME_WATCH_ROOT=false exec bin/tollgate serve\n", 0o700)
}

// copySources makes what a module needs of the project that imports it for
// its plugins.
func (r *reader) copySources() {
	r.t.Helper()
	for _, name := range []string{"core", "plugins", "ports"} {
		if err := os.CopyFS(filepath.Join(r.dir, name), os.DirFS(filepath.Join(root, name))); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *reader) write(name, content string, mode os.FileMode) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	// Another test may start a process meanwhile. The child would have the file open for writing until its
	// exec, and a program that is open for writing cannot be run ("text file busy").
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		r.t.Fatal(err)
	}
}

// follow runs one block and compares what it printed.
func (r *reader) follow(b block) {
	r.t.Helper()
	var printed string
	b.command = strings.NewReplacer("8125", r.ports.statsd, "8090", r.ports.other).Replace(b.command) // no calls of curl
	switch {
	case b.file != "":
		r.write(b.file, b.command, 0o600)
	case b.terminal:
		r.open(b)
	default:
		var failed []string
		var err error
		printed, failed, err = r.shell.run(b.command)
		if err != nil {
			r.t.Fatalf("line %d: %v; it printed:\n%s", b.line, err, printed)
		}
		if (len(failed) > 0) != b.fails {
			r.t.Errorf("line %d: these commands failed: %q; it printed:\n%s%s", b.line, failed, printed, r.logs())
		}
	}
	for _, said := range b.printed {
		r.compare(said, printed)
	}
}

// open runs a block in a terminal of its own. A service waits for its ports to
// be free of the last one, and is waited for.
func (r *reader) open(b block) {
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
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get("http://localhost:" + r.ports.json + "/healthcheck")
		if err != nil {
			continue
		}
		_ = answer.Body.Close() // the status is looked at
		if answer.StatusCode == http.StatusOK {
			return
		}
	}
	r.t.Fatalf("line %d: the service did not get healthy:\n%s", b.line, term.printed())
}

// compare looks for what a page says in what the last command printed, and in
// what runs in terminals, now or soon.
func (r *reader) compare(said printed, printed string) {
	r.t.Helper()
	printed = r.usualPorts(printed)
	gap := missing(said.text, printed)
	if gap == "" || r.eventuallyLogged(said.text) {
		return
	}
	if n := len(r.terminals); n > 0 && strings.TrimSpace(printed) == "" {
		gap = missing(said.text, r.usualPorts(r.terminals[n-1].printed()))
	}
	r.t.Errorf("line %d: nothing printed %q; the command printed:\n%s%s", said.line, gap, printed, r.logs())
}

func (r *reader) eventuallyLogged(said string) bool {
	if len(r.terminals) == 0 {
		return false
	}
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		for _, term := range r.terminals {
			if missing(said, r.usualPorts(term.printed())) == "" {
				return true
			}
		}
	}
	return false
}

// usualPorts puts the ports that the pages have in the place of those of this
// run.
func (r *reader) usualPorts(s string) string {
	return strings.NewReplacer(":"+r.ports.api, ":3000", ":"+r.ports.json, ":8080", ":"+r.ports.grpc, ":8081", ":"+r.ports.debug, ":6070", ":"+r.ports.other, ":8090").Replace(s)
}

func (r *reader) logs() string {
	var all strings.Builder
	for i, term := range r.terminals {
		fmt.Fprintf(&all, "terminal %d:\n%s", i+1, term.printed())
	}
	return all.String()
}
