package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

const root = "../../.."

// startService starts the service, which runs until the test ends, and returns the base URL of its
// API.
func startService(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.Succeed(t, instance.Build(root, dir, false, "cmd/tollgate"))
	must.Succeed(t, os.MkdirAll(filepath.Join(dir, "runtime", "config"), 0o700))
	s, err := instance.Start(filepath.Join(dir, "tollgate"), instance.Loopback(dir), "serve")
	must.Succeed(t, err)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.API
}
