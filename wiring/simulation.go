package wiring

import (
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/ratelimit/simulate"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// Simulation decides recorded requests by two sets of rules, with counters in the process.
type Simulation struct {
	*simulate.Simulation
	before, after *memory.Counters
}

// NewSimulation returns a Simulation of services that count in the process.
func NewSimulation(s settings.Settings, r simulate.Rules) (*Simulation, error) {
	clock := &simulate.Clock{}
	sim := &Simulation{before: memory.NewCounters(clock, s.Memory), after: memory.NewCounters(clock, s.Memory)}
	var err error
	sim.Simulation, err = simulate.New(s.Decide, r, simulate.Ports{
		OldCounters: sim.before, NewCounters: sim.after, Clock: clock,
	})
	return sim, err
}

// LostCounters returns how many counters were removed before their windows ended, because there
// were too many.
func (s *Simulation) LostCounters() uint64 { return s.before.Evicted() + s.after.Evicted() }
