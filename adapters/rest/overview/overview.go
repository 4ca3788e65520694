// Package overview reads what operators see first: whether this instance works, and what fails. The
// console and the API of administration show it.
package overview

import (
	"context"
	"maps"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fitness"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Source is where an overview comes from.
type Source struct {
	Mirrors      *mirroring.Operator
	Webhooks     *notifying.Operator
	Plugins      PluginStates
	Dependencies *rest.Health
	Catalogue    registrystore.Catalogue
	Reviews      registrystore.ReviewBacklog
	People       authstore.Directory
	Instance     Instance
	Instances    Instances
	Facts        Facts
	Clock        clock.Clock
}

// Instance is a process of the service.
type Instance struct {
	Version string // empty if it is not known
	Started time.Time
	Host    string // empty for this process
	Process string // its number; likewise
}

// Instances returns the processes that are connected to the database, since when they are; none if it
// does not know them.
type Instances func(ctx context.Context) ([]Instance, error)

// Facts returns what settings and host settle.
type Facts func() fitness.Facts

// Warning is a warning, and the setting or command that ends it.
type Warning struct {
	fitness.Warning
	Remedy string
}

var remedies = map[fitness.Missing]string{
	fitness.Courier: "OTP_EMAIL_PLUGIN", fitness.RootSecret: "SECRET_KEY", fitness.PrivateDebugger: "DEBUG_HOST",
	fitness.PublicAddress: "PUBLIC_URL", fitness.Backup: "tollgate backup",
}

// Warnings returns what is missing before a service is fit for people.
func Warnings(f fitness.Facts, now time.Time) []Warning {
	return each.Map(fitness.Warnings(f, now), func(w fitness.Warning) Warning { return Warning{w, remedies[w.Missing]} })
}

// MaxCounted is the number up to which the overview counts.
const MaxCounted = 10_000

// Number is a number of things, at most MaxCounted.
type Number struct {
	N    int
	More bool // there are more
}

func newNumber(n int) Number { return Number{min(n, MaxCounted), n > MaxCounted} }

// Numbers are how much there is of all instances.
type Numbers struct {
	Servers, Versions, People Number
	Reviews                   int // documents that wait for a review
}

// Checklist is the overview with numbers, and with what is missing before the service is fit for
// people.
type Checklist struct {
	Overview
	Numbers
	Instance
	rest.Traffic

	Connected []Instance
	Missing   []Warning
}

// ReadChecklist returns the overview with numbers. It returns fault.Unavailable when the database
// fails.
func (s Source) ReadChecklist(ctx context.Context) (Checklist, error) {
	o, err := s.Read(ctx)
	if err != nil {
		return Checklist{}, err
	}
	now := s.Clock.Now()
	c := Checklist{
		Overview: o, Instance: s.Instance, Traffic: s.Dependencies.Traffic(now), Missing: Warnings(s.Facts(), now),
	}
	if c.Connected, err = s.Instances(ctx); err != nil {
		return Checklist{}, err
	}
	found, err := s.Catalogue.Find(ctx, registrystore.Search{Limit: 1})
	if err != nil {
		return Checklist{}, err
	}
	c.Servers = Number{found.Total, found.More}
	versions, err := s.Catalogue.CountVersions(ctx, MaxCounted+1)
	if err != nil {
		return Checklist{}, err
	}
	people, err := s.People.Count(ctx, MaxCounted+1)
	if err != nil {
		return Checklist{}, err
	}
	c.Versions, c.People = newNumber(versions), newNumber(people)
	c.Numbers.Reviews, err = s.Reviews.CountPending(ctx)
	return c, err
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
