package wiring

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metrics "github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// newTestHost returns a host of plugins with these names that do not start.
func newTestHost(t *testing.T, names ...string) (*pluginhost.Host, func()) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), nil, 0o700))
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	host, cleanup, err := pluginhost.Open(pluginhost.Config{Dir: dir, CallTimeout: 10 * time.Second}, logrus.NewEntry(log))
	must.Succeed(t, err)
	return host, cleanup
}

// TestChoosePackageChecks requires that ownership plugins start only if packages are checked,
// and that there is a warning of those that the folder lacks.
func TestChoosePackageChecks(t *testing.T) {
	for name, c := range map[string]struct {
		checks  publishing.Checks
		parts   settings.Parts
		started bool
	}{
		"checks are enforced":       {publishing.ChecksEnforce, settings.Parts{Registry: true}, true},
		"checks only warn":          {publishing.ChecksWarn, settings.Parts{Registry: true, Auth: true}, true},
		"checks are off":            {publishing.ChecksOff, settings.Parts{Registry: true}, false},
		"the registry does not run": {publishing.ChecksEnforce, settings.Parts{Auth: true, Methods: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			host, cleanup := newTestHost(t, "pkg-test", "pkg-npm", "pkg-oci")
			log, hook := logtest.NewNullLogger()
			checker := choosePackageChecks(publishing.Config{Checks: c.checks}, c.parts, host, metrics.NewRegistry(),
				logrus.NewEntry(log))
			cleanup() // a plugin that was started is closed now, another is still idle
			if got := host.Status()[0].State != pluginhost.Idle; got != c.started || (checker != nil) != c.started {
				t.Errorf("the plugin was started: %t, want %t; the checker is %v", got, c.started, checker)
			}
			const missing = "has no pkg-cargo, pkg-mcpb, pkg-nuget, pkg-pypi:"
			if warned := len(hook.AllEntries()) == 1 &&
				strings.Contains(hook.LastEntry().Message, missing); warned != c.started {
				t.Errorf("a folder of one's own lacks plugins: warned %t, want %t", warned, c.started)
			}
		})
	}
}

// TestNoCouriersWithoutAuth requires that no courier plugin starts, and no warning is logged, if
// authentication does not run.
func TestNoCouriersWithoutAuth(t *testing.T) {
	host, cleanup := newTestHost(t, "otp-log")
	log, hook := logtest.NewNullLogger()
	got, err := chooseCouriers(
		settings.Service{Environment: settings.Embedded}, settings.Couriers{SMS: "otp-log"},
		settings.Parts{Registry: true, Methods: true, RateLimit: true}, host, logrus.NewEntry(log))
	if err != nil || got.Email != nil || got.SMS != nil || len(hook.AllEntries()) > 0 {
		t.Errorf("chooseCouriers = %v, %v (%v); the log has %v", got.Email, got.SMS, err, hook.AllEntries())
	}
	cleanup()
	if state := host.Status()[0].State; state != pluginhost.Idle { // a plugin that was started is closed now
		t.Errorf("the courier is %s", state)
	}
}

// TestDevelopmentCourierInEmbeddedOnly requires that only the embedded environment uses otp-log for
// channels without a plugin.
func TestDevelopmentCourierInEmbeddedOnly(t *testing.T) {
	for environment, want := range map[string]bool{settings.Embedded: true, settings.Production: false} {
		host, cleanup := newTestHost(t, "otp-log")
		log, _ := logtest.NewNullLogger()
		got, err := chooseCouriers(settings.Service{Environment: environment}, settings.Couriers{}, settings.Parts{
			Auth: true,
		}, host, logrus.NewEntry(log))
		cleanup()
		if err != nil || (got.Email != nil) != want || (got.SMS != nil) != want {
			t.Errorf("%s: chooseCouriers = %v, %v (%v)", environment, got.Email, got.SMS, err)
		}
	}
}

// TestReadinessChecksPlugins requires that the readiness of every part that uses plugins depends on
// them: authentication uses couriers, the registry package checks.
func TestReadinessChecksPlugins(t *testing.T) {
	host, cleanup := newTestHost(t, "otp-test")
	defer cleanup()
	for _, c := range []struct {
		parts settings.Parts
		want  bool
	}{
		{settings.Parts{Registry: true}, true},
		{settings.Parts{Auth: true}, true},
		{settings.Parts{Methods: true}, false},
	} {
		probes := apiParts{Counters: struct{ counter.Store }{}, Plugins: host}.probes(c.parts)
		got := slices.ContainsFunc(probes, func(p rest.Probe) bool { return p.Name == "otp-test" })
		if got != c.want {
			t.Errorf("%+v: readiness checks plugins: %t, want %t", c.parts, got, c.want)
		}
	}
}
