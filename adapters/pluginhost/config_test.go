package pluginhost_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
)

func TestDefaultsAreThoseOfTheTags(t *testing.T) {
	t.Parallel()
	got, err := env.ParseAsWithOptions[pluginhost.Config](env.Options{Environment: map[string]string{"PLUGIN_DIR": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := pluginhost.DefaultConfig("x"); got.Env != nil || got.Dir != want.Dir || got.StartTimeout != want.StartTimeout ||
		got.CallTimeout != want.CallTimeout || got.HealthInterval != want.HealthInterval || got.HealthTimeout != want.HealthTimeout ||
		got.RestartDelayMin != want.RestartDelayMin || got.RestartDelayMax != want.RestartDelayMax {
		t.Errorf("from the tags %+v, want %+v", got, want)
	}
	if err := got.Validate(); err != nil {
		t.Errorf("Validate() = %v, want none", err)
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	t.Parallel()
	cfg := pluginhost.DefaultConfig("x")
	cfg.CallTimeout, cfg.HealthInterval, cfg.RestartDelayMax = -1, 0, time.Nanosecond
	_, _, err := pluginhost.Open(cfg, silent())
	for _, name := range []string{"PLUGIN_CALL_TIMEOUT", "PLUGIN_HEALTH_INTERVAL", "PLUGIN_RESTART_DELAY_MAX"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Open = %v, want %s named", err, name)
		}
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	t.Run("not there", func(t *testing.T) {
		t.Parallel()
		host := open(t, pluginhost.DefaultConfig(filepath.Join(t.TempDir(), "none")), silent())
		if all := host.Status(); len(all) != 0 {
			t.Errorf("Status() = %+v, want none", all)
		}
		if _, err := host.Courier("otp-log"); err == nil || !strings.Contains(err.Error(), "otp-log") {
			t.Errorf("Courier = %v, want an error that names it", err)
		}
	})
	t.Run("a file", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "file")
		write(t, path, "", 0o644)
		refused(t, path, "is not a folder")
	})
	t.Run("writable by everyone", func(t *testing.T) {
		t.Parallel()
		dir := folder(t)
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, "everyone may write")
	})
	t.Run("only plugins are listed", func(t *testing.T) {
		t.Parallel()
		dir := folder(t)
		for _, name := range []string{"otp-b", "pkg-a", "readme", "otp-UPPER"} {
			install(t, dir, "otp-log", name)
		}
		write(t, filepath.Join(dir, "otp-notes"), "", 0o644)
		if err := os.Mkdir(filepath.Join(dir, "otp-folder"), 0o755); err != nil {
			t.Fatal(err)
		}
		host := open(t, pluginhost.DefaultConfig(dir), silent())
		var listed []string
		for _, s := range host.Status() {
			listed = append(listed, s.Name+" "+s.Kind+" "+string(s.State))
		}
		if got, want := strings.Join(listed, ", "), "otp-b courier idle, pkg-a ownership idle"; got != want {
			t.Errorf("listed %q, want %q", got, want)
		}
		if _, err := host.Courier("pkg-a"); err == nil || !strings.Contains(err.Error(), "otp-b") {
			t.Errorf("Courier(pkg-a) = %v, want an error that names otp-b", err)
		}
	})
}

// TestSettingsOfNoPluginAreTold wants a mistyped name to be told, with none of its values.
func TestSettingsOfNoPluginAreTold(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	install(t, dir, "otp-log", "otp-log")
	cfg := pluginhost.DefaultConfig(dir)
	cfg.Env = map[string][]string{"otp-log": {"A=secret"}, "pkg-nmp": {"B=secret"}}
	told := &capture{}
	open(t, cfg, told.entry())
	if text := told.String(); !strings.Contains(text, "pkg-nmp") || strings.Contains(text, "otp-log") || strings.Contains(text, "secret") {
		t.Errorf("log: %q, want pkg-nmp and no secret", text)
	}
}

func refused(t *testing.T, dir, want string) {
	t.Helper()
	_, _, err := pluginhost.Open(pluginhost.DefaultConfig(dir), silent())
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Open = %v, want an error with %q", err, want)
	}
}

// TestWrongManifests reads the files of testdata/wrong, each named after its defect; the first line, a comment, is what the error
// must say.
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
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(text), "\n")
			dir := folder(t)
			write(t, filepath.Join(dir, "plugins.yaml"), string(text), 0o644)
			refused(t, dir, strings.TrimPrefix(first, "# "))
		})
	}
	t.Run("writable by everyone", func(t *testing.T) {
		t.Parallel()
		dir := folder(t)
		write(t, filepath.Join(dir, "plugins.yaml"), "plugins: []\n", 0o666)
		refused(t, dir, "everyone may write")
	})
	t.Run("too long", func(t *testing.T) {
		t.Parallel()
		dir := folder(t)
		write(t, filepath.Join(dir, "plugins.yaml"), strings.Repeat("# x\n", 300_000), 0o644)
		refused(t, dir, "longer than")
	})
}

func TestManifestPins(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	install(t, dir, "testplugin", "my-courier-1.4")
	install(t, dir, "otp-log", "otp-log")
	write(t, filepath.Join(dir, "plugins.yaml"), `
plugins:
  - name: mine
    kind: courier
    file: my-courier-1.4
    env: {MODE: courier, ADDED: from the manifest}
    limits: {start_timeout: 20s, call_timeout: 20s, max_message_bytes: 4096}
`, 0o644)
	cfg := quick(dir)
	cfg.StartTimeout = time.Nanosecond // the manifest's stands
	cfg.Env = map[string][]string{"mine": {"MODE=exit", "GIVEN=by the host"}}
	host := open(t, cfg, silent())
	if s := only(t, host); s.Name != "mine" || s.Kind != "courier" {
		t.Errorf("status = %+v, want only what the manifest names", s)
	}
	c, err := host.Courier("mine")
	if err != nil {
		t.Fatal(err)
	}
	err = c.Deliver(t.Context(), environmentCode())
	if err == nil || !strings.Contains(err.Error(), "GIVEN=by the host ADDED=from the manifest MODE=courier") {
		t.Errorf("environment = %v, want the manifest's over the host's", err)
	}
	if _, err := host.Courier("otp-log"); err == nil {
		t.Error("otp-log is there although the manifest does not name it")
	}
}
