package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const executable = "/opt/tollgate/tollgate"

// unit returns the values of the unit's keys.
func unit(t *testing.T) map[string][]string {
	t.Helper()
	values := map[string][]string{}
	for line := range strings.Lines(read(t, "systemd", "tollgate.service")) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(line, "#") {
			values[name] = append(values[name], value)
		}
	}
	return values
}

func TestUnit(t *testing.T) {
	values := unit(t)
	environment := map[string]string{}
	for word := range strings.FieldsSeq(strings.Join(values["Environment"], " ")) {
		name, value, _ := strings.Cut(word, "=")
		environment[name] = value
	}
	checkEnvironment(t, environment)
	stop, err := time.ParseDuration(values["TimeoutStopSec"][0])
	if err != nil || stop <= shutdown(t, environment) {
		t.Errorf("the unit is stopped within %v, the service may need %v, %v", stop, shutdown(t, environment), err)
	}
	if user := values["User"]; len(user) != 1 || !strings.Contains(read(t, "systemd", "tollgate.sysusers"), "\nu "+user[0]+" ") {
		t.Errorf("the service runs as %v, which is not the user that is made", user)
	}
	if environment["DEBUG_HOST"] != "127.0.0.1" {
		t.Error("the debug listener is open to the network")
	}
	if values["KillMode"][0] != "mixed" {
		t.Error("plugins are told to end before the service has drained")
	}
}

// TestUnitByItsTool asks systemd what it thinks of the unit, as if the program were there.
func TestUnitByItsTool(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("needs systemd-analyze")
	}
	dir := t.TempDir()
	program, file := filepath.Join(dir, "tollgate"), filepath.Join(dir, "tollgate.service")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(read(t, "systemd", "tollgate.service"), "ExecStart="+executable, "ExecStart="+program)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// 0 is all locked in, 100 nothing; a unit without hardening has 96.
	if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", file).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// TestSystemdFiles lets the tools read the other files into a root of their own.
func TestSystemdFiles(t *testing.T) {
	for file, command := range map[string][]string{
		"tollgate.sysusers": {"systemd-sysusers"}, "tollgate.tmpfiles": {"systemd-tmpfiles", "--create"},
	} {
		tool, err := exec.LookPath(command[0])
		if err != nil {
			t.Logf("%s is not here", command[0])
			continue
		}
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "etc"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, line := range map[string]string{"passwd": "root:x:0:0::/root:/bin/sh\n", "group": "root:x:0:\ntollgate:x:65532:\n"} {
			if file == "tollgate.sysusers" {
				line = strings.Split(line, "\n")[0] + "\n"
			}
			if err := os.WriteFile(filepath.Join(root, "etc", name), []byte(line), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if file == "tollgate.tmpfiles" && os.Getuid() != 0 {
			continue // only root may give folders away
		}
		path, err := filepath.Abs(filepath.Join(folder, "systemd", file))
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(tool, append(command[1:], "--root="+root, path)...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}
