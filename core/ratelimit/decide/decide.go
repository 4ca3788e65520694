// Package decide answers whether a request is within its limits: it finds the rules, counts in the
// counter store and keeps the statistics. It does not load rules and does not know the protocol of
// the call.
package decide

import (
	"context"
	"sync"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// CodeNoConfiguration is the code of the fault of kind Unavailable that is returned until a first
// configuration is in force (contract L-26).
const CodeNoConfiguration fault.Code = "no_configuration"

// Ports are the dependencies of a Decider.
type Ports struct {
	// Rules returns the rules in force, or nil before a first configuration.
	Rules    func() *ruleset.Set
	Counters counter.Store
	// Local counts the hits while Counters fails. Only FailLocal uses it, and requires it.
	Local counter.Store
	// OverLimit caches the counters that Counters reported over their limits; optional.
	OverLimit counter.OverLimitCache
	// Leases counts the hits of rules with leases in Counters; optional. Without it no hits are
	// leased.
	Leases *lease.Leases
	// Observe receives every decision; optional, and without cost when it is nil.
	Observe Observe
	Clock   clock.Clock
}

// Func answers rate limit requests: Decider.Decide, or a function that calls it.
type Func func(ctx context.Context, r *ratelimit.Request) (ratelimit.Decision, error)

// Decider answers rate limit requests. It is safe for concurrent use.
type Decider struct {
	config Config
	ports  Ports
	relief *relief // nil without one
	stats  Stats
	// series holds the statistics of single values and of overrides.
	series *seriesTable
	// unknown counts descriptors in domains that the configuration does not have.
	unknown *seriesTable
	works   sync.Pool // of *work, for reuse by later calls
	keys    ratelimit.HotKeyBudget
}

// New returns a Decider, or an error that says what is wrong with the configuration.
func New(c Config, p Ports) (*Decider, error) {
	if err := c.validateWith(p); err != nil {
		return nil, err
	}
	return &Decider{
		config: c, ports: p, relief: newRelief(c, p), series: newSeriesTable(c.MaxSeries),
		unknown: newSeriesTable(MaxUnknownDomains),
	}, nil
}

// Stats returns the counts of the service itself. They are live: later decisions change them.
func (d *Decider) Stats() *Stats { return &d.stats }

// Decide counts the request's hits and returns whether they are within their limits. A request over
// a limit is an answer, not an error. Decide does not keep the request.
//
// Errors: fault.Invalid for an empty domain or descriptor list, too many descriptors, an override
// of an unknown unit, or too many hits; fault.Unavailable with CodeNoConfiguration before a first
// configuration, and without a code when the store fails and Config.FailureMode is FailError.
func (d *Decider) Decide(ctx context.Context, r *ratelimit.Request) (ratelimit.Decision, error) {
	set, err := d.rulesFor(r)
	if err != nil {
		d.stats.ServiceErrors.Add(1)
		return ratelimit.Decision{}, err
	}
	w := d.takeWork(r)
	defer d.releaseWork(w)
	d.findLines(w, set)
	d.buildHits(w)
	if err := d.countHits(ctx, w); err != nil {
		return ratelimit.Decision{}, err
	}
	decision := d.makeDecision(w)
	if d.keys.IsFull() {
		d.keys.Sweep(set.Rules(), w.now)
	}
	if d.ports.Observe != nil {
		d.notifyObserver(ctx, w, set, decision)
	}
	return decision, nil
}

// rulesFor checks the request and returns the rules in force.
func (d *Decider) rulesFor(r *ratelimit.Request) (*ruleset.Set, error) {
	if err := d.checkRequest(r); err != nil {
		return nil, err
	}
	set := d.ports.Rules()
	if set == nil {
		return nil, fault.New(fault.Unavailable, "no rate limit configuration is loaded").WithCode(CodeNoConfiguration)
	}
	return set, nil
}

// checkRequest returns fault.Invalid for a request that breaks a rule of its form.
func (d *Decider) checkRequest(r *ratelimit.Request) error {
	if r.Domain == "" {
		return fault.New(fault.Invalid, "rate limit domain must not be empty")
	}
	if len(r.Descriptors) == 0 {
		return fault.New(fault.Invalid, "rate limit descriptor list must not be empty")
	}
	if n, most := len(r.Descriptors), d.config.MaxDescriptors; most > 0 && n > most {
		return fault.Newf(fault.Invalid,
			"the request has %d descriptors, more than the %d that %s allows; send several requests",
			n, most, d.config.MaxDescriptorsName)
	}
	for i := range r.Descriptors {
		if err := checkDescriptor(&r.Descriptors[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkDescriptor(d *ratelimit.Descriptor) error {
	if d.Override != nil && d.Override.Unit.Window() == 0 {
		return fault.New(fault.Invalid, "the unit of a limit override must be known")
	}
	if d.Hits != nil && *d.Hits > ratelimit.MaxHits {
		return fault.Newf(fault.Invalid, "hits_addend of a descriptor must be at most %d", uint32(ratelimit.MaxHits))
	}
	return nil
}
