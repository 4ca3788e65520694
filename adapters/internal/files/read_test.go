package files_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/test/must"
)

// readFunctions returns the two functions that read a whole file.
func readFunctions() map[string]func(path string, maxBytes int64) ([]byte, error) {
	return map[string]func(path string, maxBytes int64) ([]byte, error){
		"Read": files.Read,
		"Open": func(path string, maxBytes int64) ([]byte, error) {
			f, err := files.Open(path, maxBytes)
			if err != nil {
				return nil, err
			}
			content, err := io.ReadAll(f)
			return content, errors.Join(err, f.Close())
		},
	}
}

func writeTemp(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	must.Succeed(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestReadWhole(t *testing.T) {
	for name, read := range readFunctions() {
		for _, content := range []string{"", "a", strings.Repeat("long ", 1000), strings.Repeat("x", 5000)} {
			if got, err := read(writeTemp(t, content), 5000); err != nil || string(got) != content {
				t.Errorf("%s returned %d bytes of %d, error %v", name, len(got), len(content), err)
			}
		}
	}
}

func TestReadRefuses(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Succeed(t, syscall.Mkfifo(pipe, 0o600))
	for name, read := range readFunctions() {
		for path, want := range map[string]string{
			writeTemp(t, "12345"):                 "is larger than 4 bytes",
			t.TempDir():                           "is not a file",
			pipe:                                  "is not a file", // must not block
			filepath.Join(t.TempDir(), "nothing"): "no such file",
		} {
			_, err := read(path, 4)
			var pathErr *fs.PathError
			if !errors.As(err, &pathErr) || pathErr.Path != path || !strings.Contains(err.Error(), want) {
				t.Errorf("%s returned error %v, want %q for %s", name, err, want, path)
			}
		}
	}
}

// TestOpenOfGrowingFile checks that the reader of a file that grows ends at the limit.
func TestOpenOfGrowingFile(t *testing.T) {
	path := writeTemp(t, "1234")
	f, err := files.Open(path, 4)
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(path, []byte("12345678"), 0o600))
	if got, err := io.ReadAll(f); err != nil || string(got) != "1234" {
		t.Errorf("read %q, %v", got, err)
	}
	must.Succeed(t, f.Close())
}
