package wiring

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

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

// TestRefusedRulesAreToldWithWhatIsInForce wants the log to say which rules hold
// when a configuration is refused.
func TestRefusedRulesAreToldWithWhatIsInForce(t *testing.T) {
	log, heard := logtest.NewNullLogger()
	told := newRuleLog(logrus.NewEntry(log))
	for _, want := range []string{"none is in force yet", "the one before stays in force"} {
		told.Refused(errors.New("a.yaml:1:1: broken"))
		if got := heard.LastEntry().Message; !strings.Contains(got, want) {
			t.Errorf("told %q, want %q in it", got, want)
		}
		told.Loaded(1, 1)
	}
}
