package pluginhost_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/ownership"
	"github.com/tollgate-dev/tollgate/ports/ownership/ownershiptest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

func newClaim(registryType, identifier string) ownership.Claim {
	return ownership.Claim{
		ServerName: "com.example/weather", RegistryType: registryType, Identifier: identifier, Version: "1.0.0",
	}
}

func TestOwnershipContract(t *testing.T) {
	t.Parallel()
	ownershiptest.Run(t, func(t *testing.T) ownershiptest.Subject {
		busy := newClaim("npm", "busy")
		return ownershiptest.Subject{
			Checker: openTestPlugin(t, "ownership", "pkg-test", unchangedConfig).Ownership(),
			Owned:   newClaim("npm", "weather"),
			Refused: map[string]ownership.Claim{
				"the package does not exist": newClaim("npm", "missing"), "not claimed": newClaim("npm", "foreign"),
			},
			Transient: &busy,
		}
	})
}

func TestHugeAnswerIsNoVerdict(t *testing.T) {
	t.Parallel()
	checker := openTestPlugin(t, "ownership", "pkg-test", unchangedConfig).Ownership()
	if err := checker.Check(t.Context(), newClaim("npm", "huge")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Check = %v, want a fault of kind Unavailable", err)
	}
	if err := checker.Check(t.Context(), newClaim("npm", "weather")); err != nil {
		t.Errorf("Check afterwards = %v, want no error", err)
	}
}

func TestTypeWhosePluginIsDown(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	installPlugin(t, dir, "testplugin", "pkg-npm")
	installPlugin(t, dir, "testplugin", "pkg-pypi")
	cfg := quickConfig(dir)
	cfg.Env = map[string][]string{"pkg-npm": {"MODE=ownership"}, "pkg-pypi": {"MODE=exit"}}
	checker := openHost(t, cfg, discardLog()).Ownership()
	if err := checker.Check(t.Context(), newClaim("pypi", "weather")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("type of a plugin that is down: Check = %v, want a fault of kind Unavailable", err)
	}
	if err := checker.Check(t.Context(), newClaim("oci", "weather")); !fault.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), "cargo, npm") {
		t.Errorf("type of no plugin: Check = %v, want a fault of kind Unsupported that names cargo and npm", err)
	}
	if types := checker.Types(); !slices.Equal(types, []string{"cargo", "npm"}) {
		t.Errorf("Types() = %q", types)
	}
}

func TestNoOwnershipPlugins(t *testing.T) {
	t.Parallel()
	checker := openHost(t, pluginhost.Config{Dir: newFolder(t), CallTimeout: 10 * time.Second}, discardLog()).Ownership()
	if err := checker.Check(t.Context(), newClaim("npm", "weather")); !fault.Is(err, fault.Unsupported) {
		t.Errorf("Check = %v, want a fault of kind Unsupported", err)
	}
	if types := checker.Types(); types == nil || len(types) != 0 {
		t.Errorf("Types() = %#v, want an empty list", types)
	}
}

func TestTypesAreKeptOverARestart(t *testing.T) {
	t.Parallel()
	host := openTestPlugin(t, "ownership", "pkg-test", func(cfg *pluginhost.Config) {
		cfg.RestartDelayMin, cfg.RestartDelayMax = time.Hour, time.Hour
	})
	checker := host.Ownership()
	must.Succeed(t, checker.Check(t.Context(), newClaim("npm", "weather")))
	killPID(t, onlyStatus(t, host).PID)
	await.Until(t, "failure", func() bool { return onlyStatus(t, host).State == pluginhost.Failed })
	if err := checker.Check(t.Context(), newClaim("npm", "weather")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Check = %v, want a fault of kind Unavailable", err)
	}
	if types := checker.Types(); !slices.Equal(types, []string{"cargo", "npm"}) {
		t.Errorf("Types() = %q", types)
	}
}

// TestBundledTypes keeps the registry types those of the plugins in this repository.
func TestBundledTypes(t *testing.T) {
	folders, err := filepath.Glob("../../plugins/pkg-*")
	must.Succeed(t, err)
	var types []string
	for _, folder := range folders {
		types = append(types, strings.TrimPrefix(filepath.Base(folder), "pkg-"))
	}
	if !slices.Equal(types, pluginhost.BundledTypes()) {
		t.Errorf("BundledTypes() = %q, plugins has %q", pluginhost.BundledTypes(), types)
	}
}
