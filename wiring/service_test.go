package wiring

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// TestReadinessLooksAtPlugins wants every part that uses plugins to be ready
// only while they run, each told by its name: couriers serve sign-in, package
// checks the registry.
func TestReadinessLooksAtPlugins(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "otp-test"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	host, cleanup, err := pluginhost.Open(pluginhost.DefaultConfig(dir), logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	defer cleanup()
	for _, c := range []struct {
		parts Parts
		want  bool
	}{
		{Parts{Registry: true}, true},
		{Parts{Auth: true}, true},
		{Parts{Methods: true}, false},
	} {
		probes := api{Counters: struct{ counter.Store }{}, Plugins: host}.probes(c.parts)
		got := slices.ContainsFunc(probes, func(p rest.Probe) bool { return p.Name == "otp-test" })
		if got != c.want {
			t.Errorf("%+v: readiness looks at plugins: %t, want %t", c.parts, got, c.want)
		}
	}
}
