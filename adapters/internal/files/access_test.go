package files_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestCheckSecret(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not have these permissions")
	}
	path := filepath.Join(t.TempDir(), "key")
	if warning, err := files.CheckSecret(path); warning != "" || err != nil {
		t.Errorf("no file: %q, %v", warning, err)
	}
	must.Succeed(t, os.WriteFile(path, nil, 0o600))
	for mode, want := range map[os.FileMode]struct{ warned, refused bool }{
		0o600: {}, 0o400: {}, 0o440: {}, 0o640: {},
		0o644: {warned: true}, 0o660: {warned: true}, 0o604: {warned: true},
		0o666: {refused: true}, 0o602: {refused: true}, 0o777: {refused: true},
	} {
		must.Succeed(t, os.Chmod(path, mode))
		warning, err := files.CheckSecret(path)
		if (warning != "") != want.warned || (err != nil) != want.refused {
			t.Errorf("mode %#o: warning %q, error %v", mode, warning, err)
		}
		for _, text := range []string{warning, errorText(err)} {
			if text != "" && (!strings.Contains(text, path) || !strings.Contains(text, "chmod 600")) {
				t.Errorf("mode %#o: %q does not say where and what to do", mode, text)
			}
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
