package pluginhost_test

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/courier/couriertest"
	"github.com/tollgate-dev/tollgate/ports/ownership"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// metricValue returns the value of a metric of a plugin, with an outcome if it is not empty, or the
// number of observations of a histogram. It returns -1 if the metric does not exist.
func metricValue(t *testing.T, r *prometheus.Registry, name, plugin, outcome string) float64 {
	t.Helper()
	families, err := r.Gather()
	must.Succeed(t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["plugin"] == plugin && labels["outcome"] == outcome {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return -1
}

// TestCallsAreMeasured checks that each call is counted under its outcome, and that all outcomes
// exist before the first call.
func TestCallsAreMeasured(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	host := openTestPlugin(t, "ownership", "pkg-test", unchangedConfig)
	host.RegisterMetrics(metrics)
	for _, outcome := range []string{"done", "refused", "unavailable", "canceled"} {
		if got := metricValue(t, metrics, "tollgate_plugin_calls_total", "pkg-test", outcome); got != 0 {
			t.Errorf("%v calls are %s before the first", got, outcome)
		}
	}
	checker := host.Ownership()
	must.Succeed(t, host.StartAll(t.Context()))
	for i, c := range []struct{ identifier, outcome string }{
		{"there", "done"}, {"missing", "refused"}, {"busy", "unavailable"},
	} {
		_ = checker.Check(t.Context(), ownership.Claim{ // other tests check the result
			ServerName: "com.example/server", RegistryType: "npm", Identifier: c.identifier, Version: "1.0.0",
		})
		if got := metricValue(t, metrics, "tollgate_plugin_calls_total", "pkg-test", c.outcome); got != 1 {
			t.Errorf("%s: %v calls are %s, want 1", c.identifier, got, c.outcome)
		}
		if got := metricValue(t, metrics, "tollgate_plugin_call_duration_seconds", "pkg-test",
			""); got != float64(i+1) {
			t.Errorf("%v calls are timed, want %d", got, i+1)
		}
	}
}

// TestCallersThatLeave checks that cancelled calls do not count as failures of the plugin.
func TestCallersThatLeave(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	host, c := startTestCourier(t, unchangedConfig)
	host.RegisterMetrics(metrics)
	left, leave := context.WithCancel(t.Context())
	leave()
	if err := c.Deliver(left, couriertest.Code(courier.Email, "1")); err == nil {
		t.Error("a cancelled call succeeded")
	}
	for outcome, want := range map[string]float64{"canceled": 1, "unavailable": 0} {
		if got := metricValue(t, metrics, "tollgate_plugin_calls_total", "otp-test", outcome); got != want {
			t.Errorf("%v calls are %s, want %v", got, outcome, want)
		}
	}
}

// TestStatesAreShown checks that a plugin is up while it runs and before its first use, and that a
// failed one is down, with the number of its restarts.
func TestStatesAreShown(t *testing.T) {
	t.Parallel()
	dir, metrics := newFolder(t), prometheus.NewRegistry()
	cfg := quickConfig(dir)
	cfg.Env = map[string][]string{}
	for name, mode := range map[string]string{"otp-broken": "exit", "otp-idle": "exit", "otp-sound": "courier"} {
		installPlugin(t, dir, "testplugin", name)
		cfg.Env[name] = []string{"MODE=" + mode}
	}
	host := openHost(t, cfg, discardLog())
	host.RegisterMetrics(metrics)
	for _, name := range []string{"otp-broken", "otp-sound"} {
		c, err := host.Courier(name)
		must.Succeed(t, err)
		// waits until the first start has succeeded or failed
		_ = c.Deliver(t.Context(), couriertest.Code(courier.Email, "1"))
	}
	for name, want := range map[string]float64{"otp-idle": 1, "otp-sound": 1, "otp-broken": 0} {
		if got := metricValue(t, metrics, "tollgate_plugin_up", name, ""); got != want {
			t.Errorf("%s is up: %v, want %v", name, got, want)
		}
	}
	await.Until(t, "restarts", func() bool {
		return metricValue(t, metrics, "tollgate_plugin_restarts_total", "otp-broken", "") > 0
	})
	if got := metricValue(t, metrics, "tollgate_plugin_restarts_total", "otp-sound", ""); got != 0 {
		t.Errorf("a sound plugin restarted %v times", got)
	}
}
