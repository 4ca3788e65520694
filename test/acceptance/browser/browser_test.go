package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tollgate-dev/tollgate/test/instance"
)

const root = "../../.."

// startService starts the service, which runs until the test ends, and returns the base URL of its
// API.
func startService(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := instance.Build(root, dir, false, "cmd/tollgate"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "runtime", "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := instance.Start(filepath.Join(dir, "tollgate"), instance.Loopback(dir), "serve")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.API
}
