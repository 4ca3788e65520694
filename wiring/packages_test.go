package wiring

import (
	"testing"

	metrics "github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// TestPackageChecks wants ownership plugins started where something is checked,
// and no processes where nothing is.
func TestPackageChecks(t *testing.T) {
	for name, c := range map[string]struct {
		level   string
		parts   Parts
		started bool
	}{
		"enforced":             {"enforce", Parts{Registry: true}, true},
		"warned of":            {"warn", Parts{Registry: true, Auth: true}, true},
		"off":                  {"off", Parts{Registry: true}, false},
		"nothing is published": {"enforce", Parts{Auth: true, Methods: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			host, cleanup := pluginsNamed(t, "pkg-test")
			checker := packageChecks(settings.Packages{Checks: c.level}, c.parts, host, metrics.NewRegistry())
			cleanup()
			// What was started is closed now; what was not is as it was.
			if got := host.Status()[0].State != pluginhost.Idle; got != c.started || (checker != nil) != c.started {
				t.Errorf("started: %v, checks: %v", got, checker != nil)
			}
		})
	}
}
