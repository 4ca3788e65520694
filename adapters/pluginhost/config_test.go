package pluginhost_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestWrongSettingsAreNamed(t *testing.T) {
	t.Parallel()
	_, _, err := pluginhost.Open(pluginhost.Config{Dir: "x", CallTimeout: -1}, discardLog())
	if err == nil || !strings.Contains(err.Error(), "PLUGIN_CALL_TIMEOUT") {
		t.Errorf("Open = %v, want PLUGIN_CALL_TIMEOUT named", err)
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	t.Run("the folder does not exist", func(t *testing.T) {
		t.Parallel()
		host := openHost(t, pluginhost.Config{Dir: filepath.Join(t.TempDir(), "none"), CallTimeout: 10 * time.Second}, discardLog())
		if all := host.Status(); len(all) != 0 {
			t.Errorf("Status() = %+v, want no plugins", all)
		}
		if _, err := host.Courier("otp-log"); err == nil || !strings.Contains(err.Error(), "otp-log") {
			t.Errorf("Courier = %v, want an error that names it", err)
		}
	})
	t.Run("the folder is a file", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "file")
		writeFile(t, path, "", 0o644)
		wantRefused(t, path, "it must be a folder")
	})
	t.Run("writable by everyone", func(t *testing.T) {
		t.Parallel()
		dir := newFolder(t)
		must.Succeed(t, os.Chmod(dir, 0o777))
		wantRefused(t, dir, "every user may write")
	})
	t.Run("only plugins are listed", func(t *testing.T) {
		t.Parallel()
		dir := newFolder(t)
		for _, name := range []string{"otp-b", "pkg-a", "readme", "otp-UPPER"} {
			installPlugin(t, dir, "otp-log", name)
		}
		writeFile(t, filepath.Join(dir, "otp-notes"), "", 0o644)
		must.Succeed(t, os.Mkdir(filepath.Join(dir, "otp-folder"), 0o755))
		host := openHost(t, pluginhost.Config{Dir: dir, CallTimeout: 10 * time.Second}, discardLog())
		var listed []string
		for _, s := range host.Status() {
			listed = append(listed, s.Name+" "+s.Kind+" "+string(s.State))
		}
		if got, want := strings.Join(listed, ", "), "otp-b courier not used, pkg-a ownership not used"; got != want {
			t.Errorf("listed %q, want %q", got, want)
		}
		if _, err := host.Courier("pkg-a"); err == nil || !strings.Contains(err.Error(), "otp-b") {
			t.Errorf("Courier(pkg-a) = %v, want an error that names otp-b", err)
		}
	})
}

// TestUnusedSettingsAreLogged checks that the log names a mistyped plugin without its values.
func TestUnusedSettingsAreLogged(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	installPlugin(t, dir, "otp-log", "otp-log")
	cfg := pluginhost.Config{Dir: dir, CallTimeout: 10 * time.Second}
	cfg.Env = map[string][]string{"otp-log": {"A=secret"}, "pkg-nmp": {"B=secret"}}
	log := &logCapture{}
	openHost(t, cfg, log.entry())
	if text := log.String(); !strings.Contains(text, "pkg-nmp") || strings.Contains(text, "otp-log") ||
		strings.Contains(text, "secret") {
		t.Errorf("log: %q, want pkg-nmp and no secret", text)
	}
}

func wantRefused(t *testing.T, dir, want string) {
	t.Helper()
	_, _, err := pluginhost.Open(pluginhost.Config{Dir: dir, CallTimeout: 10 * time.Second}, discardLog())
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Open = %v, want an error with %q", err, want)
	}
}

// TestWrongManifests reads the files of testdata/wrong, each named after its defect. The error must
// contain the text of the first line, which is a comment.
func TestWrongManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			must.Succeed(t, err)
			first, _, _ := strings.Cut(string(text), "\n")
			dir := newFolder(t)
			writeFile(t, filepath.Join(dir, "plugins.yaml"), string(text), 0o644)
			wantRefused(t, dir, strings.TrimPrefix(first, "# "))
		})
	}
	t.Run("writable by everyone", func(t *testing.T) {
		t.Parallel()
		dir := newFolder(t)
		writeFile(t, filepath.Join(dir, "plugins.yaml"), "plugins: []\n", 0o666)
		wantRefused(t, dir, "every user may write")
	})
	t.Run("too long", func(t *testing.T) {
		t.Parallel()
		dir := newFolder(t)
		writeFile(t, filepath.Join(dir, "plugins.yaml"), strings.Repeat("# x\n", 300_000), 0o644)
		wantRefused(t, dir, "at most")
	})
}

func TestManifestPins(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	installPlugin(t, dir, "testplugin", "my-courier-1.4")
	installPlugin(t, dir, "otp-log", "otp-log")
	writeFile(t, filepath.Join(dir, "plugins.yaml"), `
plugins:
  - name: mine
    kind: courier
    file: my-courier-1.4
    env: {MODE: courier, ADDED: from the manifest}
    limits: {start_timeout: 20s, call_timeout: 20s, max_message_bytes: 4096}
`, 0o644)
	cfg := quickConfig(dir)
	cfg.StartTimeout = time.Nanosecond // the manifest overrides it
	cfg.Env = map[string][]string{"mine": {"MODE=exit", "GIVEN=by the host"}}
	host := openHost(t, cfg, discardLog())
	if s := onlyStatus(t, host); s.Name != "mine" || s.Kind != "courier" {
		t.Errorf("status = %+v, want only what the manifest names", s)
	}
	c, err := host.Courier("mine")
	must.Succeed(t, err)
	err = c.Deliver(t.Context(), environmentCode())
	if err == nil || !strings.Contains(err.Error(), "GIVEN=by the host ADDED=from the manifest MODE=courier") {
		t.Errorf("environment = %v, want the manifest's over the host's", err)
	}
	if _, err := host.Courier("otp-log"); err == nil {
		t.Error("otp-log is there although the manifest does not name it")
	}
}
