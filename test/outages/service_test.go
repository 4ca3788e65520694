package outages

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	// patient and impatient are for how long calls wait for the store: the first where none may
	// fail, also on a machine that is busy, the second where many do.
	patient   = "KVSTORE_TIMEOUT=15s"
	impatient = "KVSTORE_TIMEOUT=2s"
)

const rules = `domain: faults
descriptors:
  - key: steady
    rate_limit: {unit: day, requests_per_unit: 1000000000}
  - key: few
    rate_limit: {unit: day, requests_per_unit: 5}
  - key: exact
    rate_limit: {unit: day, requests_per_unit: 3000}
`

// built is the folder with the binary.
var built string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := instance.NewFolder("tollgate-faults")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()     // a temporary folder; the system removes what is left
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // the account of PostgreSQL enters it
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := instance.Build("../..", dir, fixture.RaceDetector, "cmd/tollgate"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	built = dir
	await.AtOnce("6")
	return postgrestest.Run(m)
}

// service is one running instance.
type service struct {
	*instance.Instance
	t     *testing.T
	rules string // the folder of the rule files
}

// startService runs an instance in this process until the test ends, and waits until its rules are
// in force.
func startService(t *testing.T, environ ...string) *service {
	t.Helper()
	s, own := newService(t, environ)
	s.Instance = fixture.Launch(t, "serve", own).Process
	return s.awaitRules()
}

// startProcess is startService with a process of its own, for tests that kill it or look at it from
// outside.
func startProcess(t *testing.T, environ ...string) *service {
	t.Helper()
	s, own := newService(t, environ)
	process, err := instance.Start(filepath.Join(built, "tollgate"), own, "serve")
	must.Succeed(t, err)
	s.Instance = process
	t.Cleanup(s.stop)
	return s.awaitRules()
}

// newService writes the rules of an instance and returns it with its settings.
func newService(t *testing.T, environ []string) (*service, []string) {
	t.Helper()
	dir := t.TempDir()
	s := &service{t: t, rules: filepath.Join(dir, "runtime", "config")}
	must.Succeed(t, os.MkdirAll(s.rules, 0o700))
	s.writeRules("rules.yaml", rules)
	return s, slices.Concat(instance.Loopback(dir), []string{"ENVIRONMENT=production", patient}, environ)
}

func (s *service) awaitRules() *service {
	s.t.Helper()
	await.Until(s.t, "rules in force", func() bool { return s.readStat("ratelimit.service.config_load_success") > 0 })
	return s
}

// runCommand runs an operator command with the settings.
func runCommand(t *testing.T, environ []string, stdin string, args ...string) {
	t.Helper()
	e := fixture.Environment{Environ: append(instance.Loopback(t.TempDir()), environ...)}
	e.RunCommand(t, stdin, args...)
}

// writeRules replaces a rule file atomically.
func (s *service) writeRules(name, content string) {
	s.t.Helper()
	draft := filepath.Join(filepath.Dir(s.rules), "draft")
	must.Succeed(s.t, os.WriteFile(draft, []byte(content), 0o600))
	must.Succeed(s.t, os.Rename(draft, filepath.Join(s.rules, name)))
}

// stop ends the instance as an operator would. It fails the test if the instance has crashed or its
// race detector has found a race.
func (s *service) stop() {
	if err := s.Stop(); err != nil {
		s.t.Errorf("the service ended with %v", err)
	}
	if s.t.Failed() {
		s.t.Logf("log of the service:\n%s", s.Log())
	}
}

// getPage returns the status and the body of a URL.
func getPage(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url) //nolint:gosec // the instance's own
	must.Succeed(t, err)
	defer func() { _ = r.Body.Close() }() // nothing is left to do about it
	body, err := io.ReadAll(r.Body)
	must.Succeed(t, err)
	return r.StatusCode, string(body)
}

// readStat returns a statistic of the service, or 0 if it does not exist yet.
func (s *service) readStat(name string) uint64 {
	s.t.Helper()
	_, body := getPage(s.t, "http://"+s.Debug+"/stats")
	return findNumber(s.t, body, name+": ")
}

// readMetric returns a sample of /metrics by its name and labels, written as on that page.
func (s *service) readMetric(name string) uint64 {
	s.t.Helper()
	_, body := getPage(s.t, "http://"+s.Debug+"/metrics")
	return findNumber(s.t, body, name+" ")
}

// findNumber returns the number after the given beginning of a line.
func findNumber(t *testing.T, text, beginning string) uint64 {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, beginning); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return uint64(n)
		}
	}
	return 0
}

// newValkey returns a server that is not started yet. It skips the test if valkey-server is not
// installed.
func newValkey(t *testing.T, args ...string) *instance.Valkey {
	t.Helper()
	if !instance.ValkeyInstalled() {
		t.Skip("valkey-server is not installed")
	}
	v := instance.NewValkey(t.TempDir(), args...)
	t.Cleanup(v.Kill)
	return v
}

// startValkey returns a server that accepts connections.
func startValkey(t *testing.T, args ...string) *instance.Valkey {
	t.Helper()
	v := newValkey(t, args...)
	must.Succeed(t, v.Start())
	return v
}
