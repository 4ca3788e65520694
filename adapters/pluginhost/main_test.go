package pluginhost_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// Environment variables: binaries is the folder of the plugins that the tests use. If
// hostOf is set, the test binary is a host of that folder, which a test kills.
const (
	binaries = "PLUGINHOST_TEST_BINARIES"
	hostOf   = "PLUGINHOST_TEST_HOST"
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if isPlugin() {
		runPlugin()
		return 0
	}
	if dir := os.Getenv(hostOf); dir != "" {
		return hostUntilKilled(dir)
	}
	dir, err := os.MkdirTemp("", "pluginhost-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	build := exec.Command("go", "build", "-o", dir, "../../plugins/otp-log", "../../plugins/otp-email")
	build.Stderr = os.Stderr
	if err := errors.Join(build.Run(), copyOwnBinary(filepath.Join(dir, "testplugin")), os.Setenv(binaries, dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// copyOwnBinary copies the test binary, which is also the plugin of the tests.
func copyOwnBinary(to string) error {
	own, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer func() { _ = own.Close() }() // it was only read
	binary, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(binary, own)
	return errors.Join(err, binary.Close())
}

// installPlugin links a built binary into a plugin folder.
func installPlugin(t *testing.T, dir, binary, name string) {
	t.Helper()
	must.Succeed(t, os.Link(filepath.Join(os.Getenv(binaries), binary), filepath.Join(dir, name)))
}

// newFolder returns a new plugin folder, on the file system of the built binaries.
func newFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(os.Getenv(binaries), "plugins-")
	must.Succeed(t, err)
	return dir
}

// logCapture is a log that tests read.
type logCapture struct {
	mu   sync.Mutex
	text strings.Builder
}

func (c *logCapture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *logCapture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

func (c *logCapture) entry() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(c)
	log.SetFormatter(&logrus.JSONFormatter{})
	return logrus.NewEntry(log)
}

func discardLog() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	log.SetLevel(logrus.DebugLevel)
	return logrus.NewEntry(log)
}

// quickConfig returns settings with short restart delays and long time limits, so that a plugin
// that is only slow on a busy machine does not fail. Tests of a deadline set their own time limit.
func quickConfig(dir string) pluginhost.Config {
	cfg := pluginhost.Config{Dir: dir, CallTimeout: 10 * time.Second}
	cfg.StartTimeout, cfg.CallTimeout, cfg.HealthTimeout = time.Minute, time.Minute, time.Minute
	cfg.RestartDelayMin = 10 * time.Millisecond
	cfg.RestartDelayMax = 50 * time.Millisecond
	return cfg
}

// openHost opens a host that is closed at the end of the test.
func openHost(t *testing.T, cfg pluginhost.Config, log *logrus.Entry) *pluginhost.Host {
	t.Helper()
	host, closeHost, err := pluginhost.Open(cfg, log)
	must.Succeed(t, err)
	t.Cleanup(closeHost)
	return host
}

// openTestPlugin opens a host with the test plugin in a mode, under the given name.
func openTestPlugin(t *testing.T, mode, name string, change func(*pluginhost.Config)) *pluginhost.Host {
	t.Helper()
	dir := newFolder(t)
	installPlugin(t, dir, "testplugin", name)
	cfg := quickConfig(dir)
	cfg.Env = map[string][]string{name: {"MODE=" + mode}}
	change(&cfg)
	return openHost(t, cfg, discardLog())
}

func unchangedConfig(*pluginhost.Config) {}

// hasEnded reports whether the process has ended, reaped or not.
func hasEnded(pid int) bool {
	s := processState(fmt.Sprintf("/proc/%d", pid))
	return s == "" || s == "Z" || s == "X"
}

// processState returns the letter of the state of a process or thread, or "" if it does not exist.
func processState(proc string) string {
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	letter, _, _ := strings.Cut(after, " ")
	return letter
}

// freezeProcess stops the process and returns when all of its threads have stopped.
func freezeProcess(t *testing.T, pid int) {
	t.Helper()
	must.Succeed(t, syscall.Kill(pid, syscall.SIGSTOP))
	await.Until(t, "stop of every thread", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		if err != nil || len(threads) == 0 {
			return false
		}
		for _, thread := range threads {
			if processState(thread) != "T" {
				return false
			}
		}
		return true
	})
}

func killPID(t *testing.T, pid int) {
	t.Helper()
	must.Succeed(t, syscall.Kill(pid, syscall.SIGKILL))
}

// onlyStatus returns the status of the host's one plugin.
func onlyStatus(t *testing.T, host *pluginhost.Host) pluginhost.Status {
	t.Helper()
	all := host.Status()
	if len(all) != 1 {
		t.Fatalf("%d plugins, want 1", len(all))
	}
	return all[0]
}

// hostUntilKilled starts the plugins of dir, prints the process id of the first, and waits.
func hostUntilKilled(dir string) int {
	cfg := pluginhost.Config{Dir: dir, CallTimeout: 10 * time.Second}
	host, closeHost, err := pluginhost.Open(cfg, discardLog())
	if err != nil {
		return 1
	}
	defer closeHost()
	if err := host.StartAll(context.Background()); err != nil {
		return 1
	}
	fmt.Println(host.Status()[0].PID)
	select {}
}
