package wiring

import (
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// TestReadinessLooksAtPlugins wants every part that uses plugins to be ready
// only while they run: couriers serve sign-in, package checks the registry.
func TestReadinessLooksAtPlugins(t *testing.T) {
	for _, c := range []struct {
		parts Parts
		want  bool
	}{
		{Parts{Registry: true}, true},
		{Parts{Auth: true}, true},
		{Parts{Methods: true}, false},
	} {
		probes := api{Counters: struct{ counter.Store }{}}.probes(c.parts)
		got := slices.ContainsFunc(probes, func(p rest.Probe) bool { return p.Name == "plugins" })
		if got != c.want {
			t.Errorf("%+v: readiness looks at plugins: %t, want %t", c.parts, got, c.want)
		}
	}
}
