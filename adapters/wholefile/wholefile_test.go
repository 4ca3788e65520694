package wholefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/wholefile"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// put writes a text.
func put(text string) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.WriteString(text)
		return err
	}
}

// wantFiles wants nothing else in a folder, each file with its content.
func wantFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(want) {
		t.Errorf("there are %v, want %v", files, want)
	}
	for name, content := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != content {
			t.Errorf("%s holds %q (%v), want %q", name, got, err, content)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, mode := range []fs.FileMode{0o600, 0o644} {
		size, err := wholefile.Write(path, wholefile.Options{Mode: mode, Replace: true}, put("text"))
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || size != 4 || info.Mode() != mode {
			t.Fatalf("wrote %d bytes (%v), file %v (%v)", size, err, info, statErr)
		}
	}
	wantFiles(t, dir, map[string]string{"file": "text"})
}

// TestRelative wants a name without a folder to be one of the folder that the
// process runs in.
func TestRelative(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if _, err := wholefile.Write("file", wholefile.Options{Mode: 0o600}, put("text")); err != nil {
		t.Error(err)
	}
	wantFiles(t, dir, map[string]string{"file": "text"})
}

// TestNothingIsLost wants what was there before to stay whenever a file is not
// made, and the failure to name the path that was given, and no other.
func TestNothingIsLost(t *testing.T) {
	full := errors.New("full")
	for name, c := range map[string]struct {
		path    string
		replace bool
		fill    func(dir string) func(*os.File) error
		kind    fault.Kind
	}{
		"there already":    {"precious", false, nil, fault.Conflict},
		"came meanwhile":   {"late", false, arrives("late"), fault.Conflict},
		"a folder":         {"folder", true, nil, fault.Invalid},
		"a link to a file": {"link", true, nil, fault.Invalid},
		"a link":           {"link", false, nil, fault.Invalid},
		"a folder, asked":  {"folder", false, nil, fault.Invalid},
		"no folder":        {"none/file", true, nil, fault.Unavailable},
		"below a file":     {"precious/file", true, nil, fault.Unavailable},
		"the filler fails": {"precious", true, func(string) func(*os.File) error {
			return func(f *os.File) error { return errors.Join(put("half")(f), full) }
		}, fault.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "precious"), []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "folder"), 0o700), os.Symlink("precious", filepath.Join(dir, "link"))); err != nil {
				t.Fatal(err)
			}
			fill := put("new")
			if c.fill != nil {
				fill = c.fill(dir)
			}
			path := filepath.Join(dir, c.path)
			_, err := wholefile.Write(path, wholefile.Options{Mode: 0o600, Replace: c.replace}, fill)
			if err == nil || fault.KindOf(err) != c.kind {
				t.Fatalf("Write = %v, want kind %v", err, c.kind)
			}
			if c.kind != fault.Internal && (!strings.Contains(err.Error(), path) || strings.Contains(err.Error(), ".tollgate-")) {
				t.Errorf("the failure is told as %v", err)
			}
			if c.kind == fault.Internal && !errors.Is(err, full) {
				t.Errorf("the filler's failure is told as %v", err)
			}
			files := map[string]string{"precious": "precious", "link": "precious"}
			if c.path == "late" {
				files["late"] = "other"
			}
			if err := os.Remove(filepath.Join(dir, "folder")); err != nil {
				t.Error(err)
			}
			wantFiles(t, dir, files)
		})
	}
}

// arrives is somebody else who makes the file while it is written.
func arrives(name string) func(dir string) func(*os.File) error {
	return func(dir string) func(*os.File) error {
		return func(*os.File) error { return os.WriteFile(filepath.Join(dir, name), []byte("other"), 0o600) }
	}
}
