package prometheus

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/access"
)

const (
	// maxServers is how many servers have counters of their own (contract Z-14).
	maxServers = 1000
	// otherServer is the label of further servers, and of those that the registry does not list.
	otherServer = "other"
)

// Decisions counts decisions about calls of servers.
type Decisions struct {
	vector *prometheus.CounterVec

	mu      sync.RWMutex
	counted map[decided]prometheus.Counter // has as many keys as the registry lists servers
	servers map[string]bool                // that have a label
}

// decided are the labels of a decision.
type decided struct {
	server string
	effect access.Effect
	reason access.Reason
	mode   access.Mode
}

// NewDecisions registers the counter of decisions.
func NewDecisions(r prometheus.Registerer) *Decisions {
	d := &Decisions{counted: map[decided]prometheus.Counter{}, servers: map[string]bool{}, vector: newCounters(r, "tollgate_decide_total",
		"Decisions about calls of servers. Those of the mode observe are what a rule would have done that was passed over.",
		"server", "effect", "reason", "mode")}
	d.counter(decided{otherServer, access.Deny, access.NotListed, access.Enforce})
	for _, effect := range []access.Effect{access.Deny, access.Allow} { // as DECIDE_AWAY says
		d.counter(decided{otherServer, effect, access.Away, access.Enforce})
	}
	return d
}

// NewSeenTools registers the counter of tools in lists that pass. It returns a deciding.CountTool.
func NewSeenTools(r prometheus.Registerer) func(access.Seen) {
	c := newLabelCounters(r, "tollgate_tools_seen_total", "Tools in lists that passed, by what the approved lists of the server say.",
		"result", string(access.Approved), string(access.Unapproved), string(access.Unreviewed))
	return func(s access.Seen) { c.addTo(string(s), 1) }
}

// MeasureDecisions registers the age of what decides.
func MeasureDecisions(age func() (time.Duration, bool, error), r prometheus.Registerer) {
	newGaugeFunc(r, "tollgate_decide_snapshot_age_seconds",
		"How old rules and listings are by which calls are decided; before the first read, the time since the start.",
		func() float64 {
			d, _, _ := age()
			return d.Seconds()
		})
}

// Count counts a decision, and what a rule would have done that was passed over. It is a
// deciding.Count.
func (d *Decisions) Count(of access.Decision) {
	server := of.Server
	if of.Reason == access.NotListed || of.Reason == access.Away || server == "" {
		server = otherServer // a proxy can state any name
	}
	d.counter(decided{server, of.Effect, of.Reason, access.Enforce}).Inc()
	if of.Observed.Effect != "" {
		d.counter(decided{server, of.Observed.Effect, of.Observed.Reason, access.Observe}).Inc()
	}
}

func (d *Decisions) counter(of decided) prometheus.Counter {
	d.mu.RLock()
	c, known := d.counted[of]
	d.mu.RUnlock()
	if known {
		return c
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c = d.vector.WithLabelValues(d.label(of.server), string(of.effect), string(of.reason), string(of.mode))
	d.counted[of] = c
	return c
}

// label returns the label of a server. The caller holds the lock.
func (d *Decisions) label(server string) string {
	if d.servers[server] || server == otherServer {
		return server
	}
	if len(d.servers) >= maxServers {
		return otherServer
	}
	d.servers[server] = true
	return server
}
