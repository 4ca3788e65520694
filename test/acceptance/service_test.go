package acceptance

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// built is where TestMain has put the binaries, as `make build` lays them out.
var built string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tollgate-acceptance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder; what stays is the system's to sweep
	if err := instance.Build("../..", dir, raceDetector, "cmd/tollgate", "cmd/ratelimit-client", "plugins/otp-log", "plugins/otp-email", "plugins/otp-sms", "plugins/pkg-npm"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	built = dir
	code := m.Run()
	if code == 0 && wholeRun() && !tellUnseen(os.Stderr) {
		return 1
	}
	return code
}

// environment is where a service keeps what it keeps. Several instances may
// run in one.
type environment struct {
	name    string
	shared  bool // many instances may run on it
	command string
	dir     string
	otpLog  string
	rules   string
	environ []string
}

// environments returns a fresh environment of each kind, the production one
// only where the servers for it are given.
func environments(t *testing.T) []*environment {
	t.Helper()
	list := []*environment{newEnvironment(t, "embedded")}
	if os.Getenv("TEST_DATABASE_URL") != "" && os.Getenv("TEST_VALKEY_URL") != "" {
		list = append(list, production(t))
	}
	return list
}

// each runs a test in every environment.
func each(t *testing.T, test func(t *testing.T, e *environment)) {
	for _, e := range environments(t) {
		t.Run(e.name, func(t *testing.T) { test(t, e) })
	}
}

// production returns an environment on a database of its own, or skips.
func production(t *testing.T) *environment {
	t.Helper()
	if os.Getenv("TEST_DATABASE_URL") == "" || os.Getenv("TEST_VALKEY_URL") == "" {
		t.Skip("needs TEST_DATABASE_URL and TEST_VALKEY_URL")
	}
	e := newEnvironment(t, "production")
	e.shared = true
	e.environ = append(e.environ,
		"DATABASE_URL="+newDatabase(t),
		"KVSTORE_URL="+os.Getenv("TEST_VALKEY_URL"),
		"OTP_EMAIL_PLUGIN=otp-log",
		// One Valkey serves all tests at once: a prefix keeps them apart.
		fmt.Sprintf("CACHE_KEY_PREFIX=t%d_%d_", os.Getpid(), time.Now().UnixNano()),
	)
	return e
}

func newEnvironment(t *testing.T, name string) *environment {
	t.Helper()
	e := &environment{name: name, dir: t.TempDir(), command: "serve"}
	e.otpLog = filepath.Join(e.dir, "otp.jsonl")
	e.rules = filepath.Join(e.dir, "runtime", "config")
	if err := os.MkdirAll(e.rules, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(e.rules, "rules.yaml"), rules)
	e.environ = append(instance.Loopback(e.dir),
		"PLUGIN_DIR="+filepath.Join(built, "plugins"),
		"OTP_LOG_FILE="+e.otpLog,
		"AUTH_RATE_LIMIT=100000", "API_RATE_LIMIT=1000000",
	)
	return e
}

// newDatabase makes an empty database and returns its URL.
func newDatabase(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("acceptance_%d_%d", os.Getpid(), time.Now().UnixNano())
	own, err := instance.NewDatabase(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := instance.DropDatabase(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	return own
}

// service is one running instance.
type service struct {
	t        *testing.T
	process  *instance.Instance
	api      string // base URLs of its HTTP listeners
	limitAPI string
	debug    string
	grpc     string
}

// start runs an instance until the test ends, and waits until it answers by
// the rules.
func (e *environment) start(t *testing.T, environ ...string) *service {
	t.Helper()
	s := e.startWithoutRules(t, environ...)
	s.awaitRules()
	return s
}

// startWithoutRules is start for where no rate limit configuration comes into
// force.
func (e *environment) startWithoutRules(t *testing.T, environ ...string) *service {
	t.Helper()
	return launch(t, e.command, append(append([]string{}, e.environ...), environ...))
}

// launch runs an instance with a command and nothing but the given environment,
// until the test ends.
func launch(t *testing.T, command string, environ []string) *service {
	t.Helper()
	process, err := instance.Start(filepath.Join(built, "tollgate"), environ, command)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{
		t: t, process: process, grpc: process.GRPC,
		api: "http://" + process.API, limitAPI: "http://" + process.RateLimitHTTP, debug: "http://" + process.Debug,
	}
	undescribed.Store(process.RateLimitHTTP, nil)
	undescribed.Store(process.Debug, nil)
	undescribed.Store(process.Prometheus, nil)
	t.Cleanup(s.stop)
	return s
}

// awaitRules waits until the first rate limit configuration is in force: the listeners answer
// before that, and health reports it (contract L-30, L-31).
func (s *service) awaitRules() {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if call(s.t, "GET", s.limitAPI+"/healthcheck", nil).status == http.StatusOK {
			return
		}
	}
	s.t.Fatal("no rate limit configuration came into force")
}

// stop ends the instance as an operator would, and fails the test if it does
// not end well.
func (s *service) stop() {
	if err := s.process.Stop(); err != nil {
		s.t.Errorf("the service ended with %v", err)
	}
	if s.t.Failed() {
		s.t.Logf("log of the service:\n%s", s.process.Log())
	}
}

// tollgate runs an operator command in the environment.
func (e *environment) tollgate(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	return e.run(t, filepath.Join(built, "tollgate"), stdin, args...)
}

// run runs an operator command of a program in the environment.
func (e *environment) run(t *testing.T, program, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = e.environ
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("tollgate %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String()
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
