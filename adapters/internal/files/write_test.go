package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// writeText returns a function that writes a text.
func writeText(text string) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.WriteString(text)
		return err
	}
}

// wantFiles checks that a folder contains exactly these files with this content.
func wantFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must.Succeed(t, err)
	if len(entries) != len(want) {
		t.Errorf("the folder has %v, want %v", entries, want)
	}
	for name, content := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != content {
			t.Errorf("%s contains %q (%v), want %q", name, got, err, content)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, mode := range []fs.FileMode{0o600, 0o644} {
		size, err := files.Write(path, files.WriteOptions{Mode: mode, Replace: true}, writeText("text"))
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || size != 4 || info.Mode() != mode {
			t.Fatalf("wrote %d bytes (%v), file %v (%v)", size, err, info, statErr)
		}
	}
	wantFiles(t, dir, map[string]string{"file": "text"})
}

// TestWriteRelativePath checks that a name without a folder is in the working directory.
func TestWriteRelativePath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if _, err := files.Write("file", files.WriteOptions{Mode: 0o600}, writeText("text")); err != nil {
		t.Error(err)
	}
	wantFiles(t, dir, map[string]string{"file": "text"})
}

// TestFailedWriteKeepsFiles checks that existing files stay if Write fails, and that the error
// names the path that was given and no other.
func TestFailedWriteKeepsFiles(t *testing.T) {
	full := errors.New("full")
	for name, c := range map[string]struct {
		path    string
		replace bool
		fill    func(dir string) func(*os.File) error
		kind    fault.Kind
	}{
		"an existing file": {"precious", false, nil, fault.Conflict},
		"a file that another process creates meanwhile": {"late", false, createMeanwhile("late"), fault.Conflict},
		"a folder":                          {"folder", true, nil, fault.Invalid},
		"a link to a file":                  {"link", true, nil, fault.Invalid},
		"a link to a file, without Replace": {"link", false, nil, fault.Invalid},
		"a folder, without Replace":         {"folder", false, nil, fault.Invalid},
		"a missing folder":                  {"missing/file", true, nil, fault.Unavailable},
		"a path below a file":               {"precious/file", true, nil, fault.Unavailable},
		"an error of fill": {"precious", true, func(string) func(*os.File) error {
			return func(f *os.File) error { return errors.Join(writeText("half")(f), full) }
		}, fault.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must.Succeed(t, os.WriteFile(filepath.Join(dir, "precious"), []byte("precious"), 0o600))
			must.Succeed(t, errors.Join(os.Mkdir(filepath.Join(dir, "folder"), 0o700),
				os.Symlink("precious", filepath.Join(dir, "link"))))
			fill := writeText("new")
			if c.fill != nil {
				fill = c.fill(dir)
			}
			path := filepath.Join(dir, c.path)
			_, err := files.Write(path, files.WriteOptions{Mode: 0o600, Replace: c.replace}, fill)
			if err == nil || fault.KindOf(err) != c.kind {
				t.Fatalf("Write = %v, want kind %v", err, c.kind)
			}
			if c.kind != fault.Internal &&
				(!strings.Contains(err.Error(), path) || strings.Contains(err.Error(), ".tollgate-")) {
				t.Errorf("the error is %v, want it to name %s and no temporary file", err, path)
			}
			if c.kind == fault.Internal && !errors.Is(err, full) {
				t.Errorf("the error is %v, want the error of fill", err)
			}
			want := map[string]string{"precious": "precious", "link": "precious"}
			if c.path == "late" {
				want["late"] = "other"
			}
			must.Succeed(t, os.Remove(filepath.Join(dir, "folder")))
			wantFiles(t, dir, want)
		})
	}
}

// createMeanwhile creates the file while Write runs, as another process could.
func createMeanwhile(name string) func(dir string) func(*os.File) error {
	return func(dir string) func(*os.File) error {
		return func(*os.File) error { return os.WriteFile(filepath.Join(dir, name), []byte("other"), 0o600) }
	}
}
