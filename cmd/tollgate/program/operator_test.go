package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

// TestNoDatabase checks that without a database most commands name the missing file and its
// setting, and create nothing. Commands that may be the first of an installation create a database
// and print a note.
func TestNoDatabase(t *testing.T) {
	for _, args := range [][]string{
		{"user", "list"}, {"user", "lock", "--email", "ada@example.com"}, {"grant", "list"}, {
			"device", "list", "--email", "ada@example.com",
		},
		{"session", "list", "--email", "ada@example.com"}, {"audit", "search"}, {"methods", "list"}, {
			"migrate", "status",
		},
		{"registry", "export"}, {"backup", filepath.Join(t.TempDir(), "backup.db")},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		r := runCommand(t, dir, "", args...)
		if r.code != cli.ExitFailed || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 ||
			!strings.Contains(r.stderr, "there is no database "+filepath.Join(dir, sqlite.File)+": DATA_DIR") {
			t.Errorf("%v: %+v", args, r)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%v left a folder: %v", args, err)
		}
	}
	for _, args := range [][]string{
		{"user", "add", "--email", "ada@example.com", "--name", "Ada", "--password-stdin"}, {
			"registry", "import", "testdata/empty.json",
		},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		for i, note := range []string{"There was no database in " + dir + " (DATA_DIR)", ""} {
			r := runCommand(t, dir, password, args...)
			if first := i == 0; first && r.code != cli.ExitOK || first != strings.Contains(r.stderr, "DATA_DIR") ||
				!strings.Contains(r.stderr, note) {
				t.Errorf("%v, run %d: %+v", args, i+1, r)
			}
		}
	}
}

// TestFilesAreNotLost checks that commands overwrite files only with --force, and never the
// database.
func TestFilesAreNotLost(t *testing.T) {
	dir := newDatabase(t)
	for _, write := range [][]string{{"registry", "export"}, {"backup"}} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := runCommand(t, dir, "", append(write, file)...)
		kept, err := os.ReadFile(file)
		if r.code != cli.ExitFailed ||
			!strings.Contains(r.stderr, file+" already exists: use --force to overwrite it\n") || err != nil ||
			string(kept) != "precious" {
			t.Errorf("%v: %+v, the file contains %q (%v)", write, r, kept, err)
		}
		r = runCommand(t, dir, "", append(write, "--force", file)...)
		if kept, err = os.ReadFile(file); r.code != cli.ExitOK || err != nil || string(kept) == "precious" {
			t.Errorf("%v --force: %+v, the file contains %q (%v)", write, r, kept, err)
		}
		nowhere := filepath.Join(file, "in", "it")
		if r := runCommand(t, dir, "", append(write, nowhere)...); r.code != cli.ExitFailed ||
			!strings.Contains(r.stderr, "cannot write "+nowhere+": ") {
			t.Errorf("%v to a path below a file: %+v", write, r)
		}
	}
	own := filepath.Join(dir, sqlite.File)
	if r := runCommand(t, dir, "", "backup", "--force", own); r.code != cli.ExitFailed ||
		!strings.Contains(r.stderr, own+" is the database itself") {
		t.Errorf("a backup onto the database: %+v", r)
	}
}

// TestNoPlugins checks the message for a missing plugin folder and for an empty one.
func TestNoPlugins(t *testing.T) {
	empty := t.TempDir()
	for folder, code := range map[string]int{filepath.Join(empty, "missing"): cli.ExitFailed, empty: cli.ExitOK} {
		var stdout, stderr strings.Builder
		got := Run(t.Context(), cli.Process{
			Args: []string{"plugins"}, Environ: []string{"PLUGIN_DIR=" + folder}, Stdout: &stdout, Stderr: &stderr,
		})
		if text := stderr.String(); got != code || !strings.Contains(text, folder) ||
			!strings.Contains(text, "PLUGIN_DIR") || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: code %d, %q, %q", folder, got, stdout.String(), text)
		}
	}
}
