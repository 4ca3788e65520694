package memory

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/ports/clock"
)

// Ports are the dependencies of counters.
type Ports struct {
	Clock   clock.Clock
	Config  Config
	Metrics prometheus.Registerer
	Log     *logrus.Entry
}

// Open returns counters whose metrics and log lines have the name.
func (p Ports) Open(name string) *Counters {
	m := NewCounters(p.Clock, p.Config)
	m.Measure(name, p.Metrics, p.Log)
	return m
}

// OpenRateLimit returns the counters of rate limits in the process.
func OpenRateLimit(p Ports) *Counters { return p.Open("ratelimit") }
