package pluginhost

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/fault"
)

const labelPlugin = "plugin"

// measures are the metrics of calls.
type measures struct {
	calls *prometheus.CounterVec
	times *prometheus.HistogramVec
}

func newMeasures() measures {
	return measures{
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

// callMeter measures the calls of one plugin.
type callMeter struct {
	took                                 prometheus.Observer
	done, refused, unavailable, canceled prometheus.Counter
}

func (m measures) of(plugin string) callMeter {
	return callMeter{
		took:        m.times.WithLabelValues(plugin),
		done:        m.calls.WithLabelValues(plugin, "done"),
		refused:     m.calls.WithLabelValues(plugin, "refused"),
		unavailable: m.calls.WithLabelValues(plugin, "unavailable"),
		canceled:    m.calls.WithLabelValues(plugin, "canceled"),
	}
}

// ended takes note of a call. A plugin that says no, to a package for one, has
// done its work; one that cannot be called or cannot answer has not.
func (m *callMeter) ended(ctx context.Context, began time.Time, err error) {
	m.took.Observe(time.Since(began).Seconds())
	f, classified := fault.As(err)
	switch {
	case err == nil:
		m.done.Inc()
	case errors.Is(ctx.Err(), context.Canceled): // the caller went away
		m.canceled.Inc()
	case classified && f.Kind != fault.Unavailable && f.Kind != fault.Internal:
		m.refused.Inc()
	default:
		m.unavailable.Inc()
	}
}

// Measure adds to the metrics of r how calls of the plugins fare, and how the plugins stand.
func (h *Host) Measure(r prometheus.Registerer) {
	r.MustRegister(h.metrics.calls, h.metrics.times, newStates(h))
}

// states tells how the plugins of a host stand, whenever it is asked.
type states struct {
	host         *Host
	up, restarts *prometheus.Desc
}

func newStates(h *Host) *states {
	return &states{
		host: h,
		up: prometheus.NewDesc("tollgate_plugin_up",
			"1 while a plugin runs, or before its first use; 0 while it starts or has failed.", []string{labelPlugin}, nil),
		restarts: prometheus.NewDesc("tollgate_plugin_restarts_total",
			"Starts of a plugin after it failed.", []string{labelPlugin}, nil),
	}
}

// Describe implements prometheus.Collector.
func (s *states) Describe(to chan<- *prometheus.Desc) {
	to <- s.up
	to <- s.restarts
}

// Collect implements prometheus.Collector.
func (s *states) Collect(to chan<- prometheus.Metric) {
	for _, status := range s.host.Status() {
		up := 0.0
		if status.State == Running || status.State == Idle {
			up = 1
		}
		to <- prometheus.MustNewConstMetric(s.up, prometheus.GaugeValue, up, status.Name)
		to <- prometheus.MustNewConstMetric(s.restarts, prometheus.CounterValue, float64(status.Restarts), status.Name)
	}
}
