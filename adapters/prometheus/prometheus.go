// Package prometheus collects the metrics of a service and exposes them to Prometheus: metrics of
// the process, of the build, and of ports and use cases, which decorators in this package measure.
// An adapter registers its own metrics itself. This package opens no listener, and the decorators
// do not change any behaviour.
//
// Names, labels and label values are stable, because dashboards use them; docs/metrics.md lists
// them. Labels have values of fixed sets only. Values that are known in advance start with 0, so
// that a rate includes the first event.
package prometheus

import (
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Build identifies the program. An empty field is shown as "unknown".
type Build struct {
	Version  string
	Revision string // of the source
}

// Registry contains all metrics of one service. It is a prometheus.Registerer and safe for
// concurrent use. Several in one process are independent.
type Registry struct {
	*prometheus.Registry
}

// New returns a registry with the metrics of the process and the build.
func New(b Build) *Registry {
	r := &Registry{prometheus.NewRegistry()}
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tollgate_build_info",
			Help: "Version and revision of the program; always 1.",
			ConstLabels: prometheus.Labels{
				"version": valueOrUnknown(b.Version), "revision": valueOrUnknown(b.Revision),
				"goversion": runtime.Version(),
			},
		}, func() float64 { return 1 }),
	)
	return r
}

func valueOrUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// maxReaders is the maximum number of concurrent requests for the metrics. With many rules a
// request costs time and memory, and the listener does not authenticate its callers.
const maxReaders = 5

// Handler returns a handler that responds with all current metrics, or with 503 while maxReaders
// other requests are in progress.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{Registry: r, MaxRequestsInFlight: maxReaders})
}
