// Package overview reads what operators see first: whether this instance works, and what fails. The
// console and the API of administration show it.
package overview

import (
	"context"
	"maps"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
)

// Source is where an overview comes from.
type Source struct {
	Mirrors      *mirroring.Operator
	Webhooks     *notifying.Operator
	Plugins      PluginStates
	Dependencies *rest.Health
}

// PluginStates returns the state of each plugin.
type PluginStates func() []Plugin

// Plugin is the state of a plugin.
type Plugin struct {
	Name, Kind, Version, State, LastError string
	Restarts                              int
}

// Overview is the state of this instance, and of what all instances do.
type Overview struct {
	Status       string            // that of /ready
	Dependencies map[string]string // without the plugins
	Plugins      []Plugin
	Failing      []mirror.Mirror
	Mirrors      int
	Webhooks     int
	Pending      int // events that wait for their delivery
	Dead         int // events that could not be delivered
}

// Read returns the overview. It returns fault.Unavailable when the database fails.
func (s Source) Read(ctx context.Context) (Overview, error) {
	o := Overview{Plugins: s.Plugins()}
	var states map[string]string
	o.Status, states = s.Dependencies.States(ctx)
	o.Dependencies = maps.Clone(states)
	for _, one := range o.Plugins { // they have a list of their own
		delete(o.Dependencies, one.Name)
	}
	mirrors, err := s.Mirrors.List(ctx)
	if err != nil {
		return Overview{}, err
	}
	o.Mirrors = len(mirrors)
	for _, m := range mirrors {
		if m.State.Health() == mirror.Failing {
			o.Failing = append(o.Failing, m)
		}
	}
	webhooks, err := s.Webhooks.List(ctx)
	o.Webhooks = len(webhooks)
	for _, w := range webhooks {
		o.Dead, o.Pending = o.Dead+w.Dead, o.Pending+w.Pending
	}
	return o, err
}
