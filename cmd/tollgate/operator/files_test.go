package operator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestFilesAreNotLost checks that commands overwrite files only with --force, and never the
// database.
func TestFilesAreNotLost(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	for _, write := range [][]string{{"registry", "export"}, {"backup"}} {
		file := filepath.Join(t.TempDir(), "file")
		fixture.WriteFile(t, file, "precious")
		for _, c := range []struct {
			args []string
			code int
		}{{[]string{file}, cli.ExitFailed}, {[]string{"--force", file}, cli.ExitOK}} {
			_, stderr, code := e.TryCommand(t, "", append(write, c.args...)...)
			kept, err := os.ReadFile(file)
			if code != c.code || err != nil || (string(kept) == "precious") != (code != cli.ExitOK) {
				t.Errorf("%v %v: code %d, %s, the file has %d bytes (%v)", write, c.args, code, stderr, len(kept), err)
			}
		}
	}
	own := filepath.Join(e.Dir, "data", sqlite.File)
	if _, stderr, code := e.TryCommand(t, "", "backup", "--force", own); code != cli.ExitFailed ||
		!strings.Contains(stderr, own+" is the database itself") {
		t.Errorf("a backup onto the database: %d, %s", code, stderr)
	}
}

// TestNothingIsMade checks that a command without a database makes no folder.
func TestNothingIsMade(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	e := &fixture.Environment{Environ: []string{"DATA_DIR=" + data}}
	for _, command := range []string{"user list", "migrate status", "registry export", "backup " + data + ".db"} {
		_, _, code := e.TryCommand(t, "", strings.Fields(command)...)
		if _, err := os.Stat(data); code != cli.ExitFailed || !os.IsNotExist(err) {
			t.Errorf("%s: exit code %d, the folder: %v", command, code, err)
		}
	}
}

// TestMigrate migrates a new database, and lists what an empty one lacks, which completion does not add.
func TestMigrate(t *testing.T) {
	dir := t.TempDir()
	e := &fixture.Environment{Environ: []string{"DATA_DIR=" + dir}}
	var applied []string
	e.ReadCommand(t, &applied, "migrate")
	if len(applied) < 7 || applied[0] != "0001_registry" {
		t.Errorf("applied %v", applied)
	}
	must.Succeed(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	fixture.WriteFile(t, filepath.Join(dir, "empty", sqlite.File), "")
	for state, environ := range map[string][]string{"applied": e.Environ, "pending": {"DATA_DIR=" + dir + "/empty"}} {
		var steps []struct{ Name, State, AppliedAt string }
		one := &fixture.Environment{Environ: environ}
		one.RunCommand(t, "", "__completeNoDesc", "view", "remove", "")
		one.ReadCommand(t, &steps, "migrate", "status")
		for i, step := range steps {
			if step.State != state || (step.AppliedAt == "") != (state == "pending") || step.Name != applied[i] {
				t.Errorf("step %d of a database in which all are %s is %+v", i, state, step)
			}
		}
		if len(steps) != len(applied) {
			t.Errorf("%s: %d steps, want %d", state, len(steps), len(applied))
		}
	}
}
