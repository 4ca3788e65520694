package prometheus

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
)

// mirrors shows the states of mirrors and counts reads of other registries.
type mirrors struct {
	lastSuccess *prometheus.GaugeVec
	servers     *prometheus.GaugeVec
	failing     *prometheus.GaugeVec
	reads       labelCounters

	mu    sync.Mutex
	shown map[mirror.Name]bool // the mirrors that the gauges have
}

// readSucceeded is the outcome of a read that succeeded.
const readSucceeded = "succeeded"

func newMirrors(r prometheus.Registerer) *mirrors {
	return &mirrors{
		shown: make(map[mirror.Name]bool),
		lastSuccess: newGauges(r, "tollgate_mirror_last_success_timestamp_seconds",
			"When the last read of another registry that succeeded began, as Unix time; 0 before the first.", "mirror"),
		servers: newGauges(r, "tollgate_mirror_servers", "Servers that a mirror has, as of its last success.", "mirror"),
		failing: newGauges(r, "tollgate_mirror_failing",
			"1 if the last read of another registry failed, on whichever instance, else 0.", "mirror"),
		reads: newLabelCounters(r, "tollgate_mirror_reads_total", "Reads of other registries by this instance, by outcome.",
			"outcome", readSucceeded, failed),
	}
}

// report counts an event of the reads of other registries.
func (m *mirrors) report(e any) {
	switch e := e.(type) {
	case mirroring.Synced:
		m.reads.increment(readSucceeded)
	case mirroring.SyncFailed:
		if e.Name != "" { // else the mirrors could not be listed
			m.reads.increment(failed)
		}
	case mirroring.Listed:
		m.show(e.Mirrors)
	}
}

// show sets the gauges, and removes those of mirrors that are not there any more.
func (m *mirrors) show(all []mirror.Mirror) {
	m.mu.Lock()
	defer m.mu.Unlock()
	listed := make(map[mirror.Name]bool, len(all))
	for _, one := range all {
		listed[one.Name] = true
		at := 0.0
		if !one.State.LastSuccess.IsZero() {
			at = float64(one.State.LastSuccess.UnixMicro()) / microsPerSecond
		}
		m.lastSuccess.WithLabelValues(string(one.Name)).Set(at)
		m.servers.WithLabelValues(string(one.Name)).Set(float64(one.State.Servers))
		failing := 0.0
		if one.State.Health() == mirror.Failing {
			failing = 1
		}
		m.failing.WithLabelValues(string(one.Name)).Set(failing)
	}
	for name := range m.shown {
		if !listed[name] {
			m.lastSuccess.DeleteLabelValues(string(name))
			m.servers.DeleteLabelValues(string(name))
			m.failing.DeleteLabelValues(string(name))
		}
	}
	m.shown = listed
}

const microsPerSecond = 1e6
