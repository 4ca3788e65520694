// Package prometheus holds the metrics of one service and shows them as
// Prometheus reads them: those of the process and the build, and those of ports
// and use cases, which decorators measure whatever answers or calls them. What
// only one adapter knows it counts itself. This package listens nowhere, and
// nothing behaves otherwise for being counted.
//
// Names, labels and their values are a promise to dashboards: docs/metrics.md
// lists them. Labels take values of closed sets only, and what is known ahead
// is there from the start with 0, so that a rate sees the first one counted.
package prometheus

import (
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Build says which program runs. A part that is not known is "unknown".
type Build struct {
	Version  string
	Revision string // of the source
}

// Registry holds all metrics of one service. It is a prometheus.Registerer, safe
// for concurrent use; several in one process know nothing of each other.
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
			Help: "Which program runs; always 1.",
			ConstLabels: prometheus.Labels{
				"version": valueOrUnknown(b.Version), "revision": valueOrUnknown(b.Revision), "goversion": runtime.Version(),
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

// maxReaders is how many may read the metrics at once. Of many rules that takes
// work and memory, and the listener asks nobody who they are.
const maxReaders = 5

// Handler answers each request with all metrics as they stand; with 503 while
// as many as may are being answered.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{Registry: r, MaxRequestsInFlight: maxReaders})
}
