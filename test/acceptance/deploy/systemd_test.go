package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/must"
)

// The paths of the program in the image, and where packages install it.
const (
	installedPath = "/opt/tollgate/tollgate"
	packagedPath  = "/usr/lib/tollgate/tollgate"
)

// readUnit returns the values of each key in the systemd unit.
func readUnit(t *testing.T) map[string][]string {
	t.Helper()
	values := map[string][]string{}
	for line := range strings.Lines(readDeployFile(t, "systemd", "tollgate.service")) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(line, "#") {
			values[name] = append(values[name], value)
		}
	}
	return values
}

// TestUnit checks the unit's settings, stop timeout, user and kill mode.
func TestUnit(t *testing.T) {
	values := readUnit(t)
	environment := map[string]string{}
	for word := range strings.FieldsSeq(strings.Join(values["Environment"], " ")) {
		name, value, _ := strings.Cut(word, "=")
		environment[name] = value
	}
	checkEnvironment(t, environment)
	stop, err := time.ParseDuration(values["TimeoutStopSec"][0])
	if err != nil || stop <= shutdownTime(t, environment) {
		t.Errorf("TimeoutStopSec is %v, but a shutdown may take %v (%v)", stop, shutdownTime(t, environment), err)
	}
	if user := values["User"]; len(user) != 1 ||
		!strings.Contains(readDeployFile(t, "systemd", "tollgate.sysusers"), "\nu "+user[0]+" ") {
		t.Errorf("the service runs as %v, a user that tollgate.sysusers does not create", user)
	}
	if environment["DEBUG_HOST"] != "127.0.0.1" {
		t.Error("DEBUG_HOST must be 127.0.0.1: otherwise the debug listener is open to the network")
	}
	if values["KillMode"][0] != "mixed" {
		t.Error("KillMode must be mixed: otherwise systemd ends the plugins before the service has drained")
	}
}

// TestUnitWithSystemdAnalyze runs `systemd-analyze verify` and `systemd-analyze security` on the
// unit, with a stub as the program.
func TestUnitWithSystemdAnalyze(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("needs systemd-analyze")
	}
	dir := t.TempDir()
	program, file := filepath.Join(dir, "tollgate"), filepath.Join(dir, "tollgate.service")
	must.Succeed(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700))
	text := strings.ReplaceAll(readDeployFile(t, "systemd", "tollgate.service"), "ExecStart="+packagedPath,
		"ExecStart="+program)
	must.Succeed(t, os.WriteFile(file, []byte(text), 0o600))
	if out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// 0 is the best score, 100 the worst; a unit without hardening has 96.
	if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", file).
		CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// TestSystemdFiles runs systemd-sysusers and systemd-tmpfiles on the other files, with a temporary
// folder as the root.
func TestSystemdFiles(t *testing.T) {
	for file, command := range map[string][]string{
		"tollgate.sysusers": {"systemd-sysusers"}, "tollgate.tmpfiles": {"systemd-tmpfiles", "--create"},
	} {
		tool, err := exec.LookPath(command[0])
		if err != nil {
			t.Logf("%s is not installed", command[0])
			continue
		}
		root := t.TempDir()
		must.Succeed(t, os.MkdirAll(filepath.Join(root, "etc"), 0o700))
		for name, line := range map[string]string{
			"passwd": "root:x:0:0::/root:/bin/sh\n", "group": "root:x:0:\ntollgate:x:65532:\n",
		} {
			if file == "tollgate.sysusers" {
				line = strings.Split(line, "\n")[0] + "\n"
			}
			must.Succeed(t, os.WriteFile(filepath.Join(root, "etc", name), []byte(line), 0o600))
		}
		if file == "tollgate.tmpfiles" && os.Getuid() != 0 {
			continue // only root may change the owner of a folder
		}
		path, err := filepath.Abs(filepath.Join(deployFolder, "systemd", file))
		must.Succeed(t, err)
		if out, err := exec.Command(tool, append(command[1:], "--root="+root, path)...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}
