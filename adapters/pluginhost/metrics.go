package pluginhost

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/fault"
)

const labelPlugin = "plugin"

// callMetrics holds the metrics of the calls of all plugins.
type callMetrics struct {
	calls *prometheus.CounterVec
	times *prometheus.HistogramVec
}

func newCallMetrics() callMetrics {
	return callMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_plugin_calls_total",
			Help: "Calls of plugins.",
		}, []string{labelPlugin, "outcome"}),
		times: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tollgate_plugin_call_duration_seconds",
			Help:    "How long calls of plugins took, including the wait for a first start.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{labelPlugin}),
	}
}

// callMeter holds the metrics of the calls of one plugin.
type callMeter struct {
	took                                 prometheus.Observer
	done, refused, unavailable, canceled prometheus.Counter
}

func (m callMetrics) forPlugin(plugin string) callMeter {
	return callMeter{
		took:        m.times.WithLabelValues(plugin),
		done:        m.calls.WithLabelValues(plugin, "done"),
		refused:     m.calls.WithLabelValues(plugin, "refused"),
		unavailable: m.calls.WithLabelValues(plugin, "unavailable"),
		canceled:    m.calls.WithLabelValues(plugin, "canceled"),
	}
}

// recordCall records a call that began at began. A refusal, for example of a package, is a
// successful call; it counts as refused. A call that failed counts as unavailable.
func (m *callMeter) recordCall(ctx context.Context, began time.Time, err error) {
	m.took.Observe(time.Since(began).Seconds())
	f, classified := fault.As(err)
	switch {
	case err == nil:
		m.done.Inc()
	case errors.Is(ctx.Err(), context.Canceled): // the caller cancelled the call
		m.canceled.Inc()
	case classified && f.Kind != fault.Unavailable && f.Kind != fault.Internal:
		m.refused.Inc()
	default:
		m.unavailable.Inc()
	}
}

// RegisterMetrics registers the metrics of the plugins' calls and states with r.
func (h *Host) RegisterMetrics(r prometheus.Registerer) {
	r.MustRegister(h.metrics.calls, h.metrics.times, newStateCollector(h))
}

// stateCollector collects the states of a host's plugins.
type stateCollector struct {
	host         *Host
	up, restarts *prometheus.Desc
}

func newStateCollector(h *Host) *stateCollector {
	return &stateCollector{
		host: h,
		up: prometheus.NewDesc("tollgate_plugin_up",
			"1 while a plugin runs, or before its first use; 0 while it starts or has failed.", []string{
				labelPlugin,
			}, nil),
		restarts: prometheus.NewDesc("tollgate_plugin_restarts_total",
			"Starts of a plugin after it failed.", []string{labelPlugin}, nil),
	}
}

// Describe implements [prometheus.Collector].
func (s *stateCollector) Describe(to chan<- *prometheus.Desc) {
	to <- s.up
	to <- s.restarts
}

// Collect implements [prometheus.Collector].
func (s *stateCollector) Collect(to chan<- prometheus.Metric) {
	for _, status := range s.host.Status() {
		up := 0.0
		if status.State == Running || status.State == Idle {
			up = 1
		}
		to <- prometheus.MustNewConstMetric(s.up, prometheus.GaugeValue, up, status.Name)
		to <- prometheus.MustNewConstMetric(s.restarts, prometheus.CounterValue, float64(status.Restarts), status.Name)
	}
}
