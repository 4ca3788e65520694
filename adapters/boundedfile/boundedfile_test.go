package boundedfile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/boundedfile"
)

// ways are the two ways to read a whole file.
func ways() map[string]func(path string, most int64) ([]byte, error) {
	return map[string]func(path string, most int64) ([]byte, error){
		"Read": boundedfile.Read,
		"Open": func(path string, most int64) ([]byte, error) {
			f, err := boundedfile.Open(path, most)
			if err != nil {
				return nil, err
			}
			content, err := io.ReadAll(f)
			return content, errors.Join(err, f.Close())
		},
	}
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhole(t *testing.T) {
	for name, read := range ways() {
		for _, content := range []string{"", "a", strings.Repeat("long ", 1000), strings.Repeat("x", 5000)} {
			if got, err := read(write(t, content), 5000); err != nil || string(got) != content {
				t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(content), err)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, read := range ways() {
		for path, want := range map[string]string{
			write(t, "12345"):                     "is larger than 4 bytes",
			t.TempDir():                           "is not a file",
			pipe:                                  "is not a file", // and nobody waits for a writer
			filepath.Join(t.TempDir(), "nothing"): "no such file",
		} {
			_, err := read(path, 4)
			var told *fs.PathError
			if !errors.As(err, &told) || told.Path != path || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q of %s", name, err, want, path)
			}
		}
	}
}

// TestGrown wants no byte beyond the bound of a file that grows after it was opened.
func TestGrown(t *testing.T) {
	path := write(t, "1234")
	f, err := boundedfile.Open(path, 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("12345678"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(f); err != nil || string(got) != "1234" {
		t.Errorf("read %q, %v", got, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
