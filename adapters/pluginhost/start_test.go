package pluginhost_test

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/courier/couriertest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestPluginsThatDoNotStart(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		mode, name string
		want       string // part of the reason
	}{
		"wrong cookie":         {"cookie", "otp-test", "exited: exit status 1 before it served"},
		"wrong protocol":       {"protocol", "otp-test", "incompatible API version"},
		"never shakes hands":   {"slow", "otp-test", "did not start within"},
		"never answers a call": {"mute", "otp-test", "did not start within"},
		"exits at once": {
			"exit", "otp-test", "exited: exit status 3 before it served: a setting is missing",
		},
		"a description that is too large":                {"huge", "otp-test", "ResourceExhausted"},
		"an ownership plugin with the name of a courier": {"ownership", "otp-test", "of kind ownership"},
		"a courier with the name of an ownership plugin": {"courier", "pkg-npm", "of kind courier"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := openTestPlugin(t, c.mode, c.name, func(cfg *pluginhost.Config) {
				if strings.Contains(c.want, "within") {
					cfg.StartTimeout = 300 * time.Millisecond
				}
			})
			must.Succeed(t, host.StartAll(t.Context()))
			await.Until(t, "more than one try", func() bool { return onlyStatus(t, host).Restarts > 1 })
			if s := onlyStatus(t, host); !strings.Contains(s.LastError, c.want) || s.PID != 0 {
				t.Errorf("status = %+v, want no process, and %q as the reason", s, c.want)
			}
		})
	}
}

func TestFailedPluginAnswersAtOnce(t *testing.T) {
	t.Parallel()
	host := openTestPlugin(t, "exit", "otp-test", func(cfg *pluginhost.Config) {
		cfg.RestartDelayMin, cfg.RestartDelayMax = time.Hour, time.Hour
	})
	c, err := host.Courier("otp-test")
	must.Succeed(t, err)
	for range 2 {
		err = c.Deliver(t.Context(), couriertest.Code(courier.Email, "1"))
		f, ok := fault.As(err)
		if !ok || f.Kind != fault.Unavailable || f.RetryAfter <= 0 || f.RetryAfter > time.Hour {
			t.Errorf("Deliver = %v (%+v), want a fault of kind Unavailable with a delay before the next try", err, f)
		}
	}
}

func TestTamperedBinaryIsNotStarted(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	installPlugin(t, dir, "testplugin", "otp-test")
	pinChecksum(t, dir, "otp-test")
	host := openHost(t, quickConfig(dir), discardLog())
	c, err := host.Courier("otp-test")
	must.Succeed(t, err)
	if err := c.Deliver(t.Context(), couriertest.Code(courier.Email, "1")); err != nil {
		t.Fatalf("untampered: %v", err)
	}
	replaceFile(t, filepath.Join(dir, "otp-test"), filepath.Join(os.Getenv(binaries), "otp-log"))
	wantUnavailable(t, c, "EXIT")
	await.Until(t, "refusal", func() bool { return strings.Contains(onlyStatus(t, host).LastError, "SHA-256") })
	wantUnavailable(t, c, "1")
	replaceFile(t, filepath.Join(dir, "otp-test"), filepath.Join(os.Getenv(binaries), "testplugin"))
	await.Until(t, "start of the restored binary", func() bool {
		return onlyStatus(t, host).State == pluginhost.Running
	})
}

// pinChecksum writes a manifest with the checksum of the plugin.
func pinChecksum(t *testing.T, dir, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	must.Succeed(t, err)
	writeFile(t, filepath.Join(dir, "plugins.yaml"),
		fmt.Sprintf("plugins: [{name: %s, sha256: %X}]\n", name, sha256.Sum256(text)), 0o644)
}

// replaceFile replaces path with a link to source.
func replaceFile(t *testing.T, path, source string) {
	t.Helper()
	must.Succeed(t, errors.Join(os.Remove(path), os.Link(source, path)))
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	must.Succeed(t, errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)))
}

func TestBinaryThatEveryUserMayWriteToIsNotStarted(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	writeFile(t, filepath.Join(dir, "otp-open"), "#!/bin/sh\n", 0o777)
	host := openHost(t, quickConfig(dir), discardLog())
	must.Succeed(t, host.StartAll(t.Context()))
	if s := onlyStatus(t, host); !strings.Contains(s.LastError, "every user may write") {
		t.Errorf("status = %+v", s)
	}
}

func TestOutputOfAPluginIsNotTrusted(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	installPlugin(t, dir, "testplugin", "otp-test")
	cfg := quickConfig(dir)
	cfg.Env = map[string][]string{"otp-test": {"MODE=noise"}}
	out := &logCapture{}
	host := openHost(t, cfg, out.entry())
	must.Succeed(t, host.StartAll(t.Context()))
	if s := onlyStatus(t, host); s.State != pluginhost.Running || s.Version != "noisy" {
		t.Errorf("status = %+v, want it running", s)
	}
	host.Close()
	logged := out.String()
	for _, want := range []string{
		`"level":"warning","msg":"named level","plugin":"otp-test","plugin.plugin":"impostor"`,
		`"answer":42,"kind":"courier","level":"warning","msg":"warned"`,
		`"level":"error","msg":"tagged"`,
		`"level":"error","msg":"panic: not really"`,
	} {
		if !strings.Contains(logged, want) {
			t.Errorf("log lacks %s", want)
		}
	}
	for line := range strings.Lines(logged) {
		if len(line) > 20_000 {
			t.Errorf("a line of %d bytes is logged", len(line))
		}
	}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	dir := newFolder(t)
	cfg := quickConfig(dir)
	cfg.Env = map[string][]string{
		"otp-parent": {"MODE=parent"}, "otp-slow": {"MODE=slow"}, "otp-exit": {"MODE=exit"}, "pkg-npm": {
			"MODE=ownership",
		},
	}
	for name := range cfg.Env {
		installPlugin(t, dir, "testplugin", name)
	}
	installPlugin(t, dir, "otp-log", "otp-log")
	host, closeHost, err := pluginhost.Open(cfg, discardLog())
	must.Succeed(t, err)
	defer closeHost()
	host.Ownership()
	for _, name := range []string{"otp-parent", "otp-slow", "otp-exit", "otp-log"} {
		if _, err := host.Courier(name); err != nil {
			t.Fatal(err)
		}
	}
	var pids []int
	await.Until(t, "three plugins", func() bool {
		pids = pids[:0]
		for _, s := range host.Status() {
			if s.State == pluginhost.Running {
				pids = append(pids, s.PID)
			}
			if child, err := strconv.Atoi(s.Version); err == nil {
				pids = append(pids, child)
			}
		}
		return len(pids) == 4 // otp-log, otp-parent, its child, pkg-npm
	})
	closeHost()
	for _, pid := range pids {
		await.Until(t, fmt.Sprintf("end of process %d", pid), func() bool { return hasEnded(pid) })
	}
	for _, s := range host.Status() {
		if s.State != pluginhost.Closed || s.PID != 0 {
			t.Errorf("status after Close = %+v", s)
		}
	}
	await.Until(t, "end of goroutines", func() bool { return runtime.NumGoroutine() <= before })
	c, err := host.Courier("otp-log")
	must.Succeed(t, err)
	wantUnavailable(t, c, "1")
}

func TestCloseWithAStoppedOrUnusedPlugin(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	installPlugin(t, dir, "otp-log", "otp-log")
	host := openHost(t, quickConfig(dir), discardLog())
	host.Close()
	c, err := host.Courier("otp-log")
	must.Succeed(t, err)
	wantUnavailable(t, c, "1")
}

func TestLongTemporaryFolder(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	must.Succeed(t, os.Mkdir(long, 0o700))
	t.Setenv("TMPDIR", long)
	startTestCourier(t, unchangedConfig)
}

func TestPluginsEndWithAHostThatIsKilled(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	installPlugin(t, dir, "otp-log", "otp-log")
	child := exec.Command(os.Args[0])
	short, err := os.MkdirTemp("", "killed-")
	must.Succeed(t, err)
	defer func() { _ = os.RemoveAll(short) }()
	child.Env = append(os.Environ(), hostOf+"="+dir, "TMPDIR="+short) // a killed host leaves its folder of sockets
	out, err := child.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must.Succeed(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid == 0 || hasEnded(pid) {
		t.Fatalf("host printed %q, want the id of a living process", line)
	}
	must.Succeed(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	await.Until(t, "end of the plugin", func() bool { return hasEnded(pid) })
}
