// Package decide answers whether a request is within its limits: it finds the
// rules, counts in the counter store and keeps the statistics. Where rules come
// from and how calls arrive is not its business.
package decide

import (
	"context"
	"errors"
	"sync"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// CodeNoConfiguration is the code of the fault of kind Unavailable that is returned until a first
// configuration is in force (contract L-26).
const CodeNoConfiguration fault.Code = "no_configuration"

// Rules gives the rules in force; nil before any are.
type Rules interface {
	Current() *ruleset.Set
}

// Ports is what a Decider asks of the world.
type Ports struct {
	Rules    Rules
	Counters counter.Store
	// Local counts while Counters is away, in FailLocal; nil otherwise.
	Local counter.Store
	// OverLimit remembers counters that Counters has told to be over their
	// limit; nil remembers none (LOCAL_CACHE_SIZE_IN_BYTES).
	OverLimit counter.OverLimitCache
	// Observer is told of every decision; nil for none, which costs nothing.
	Observer Observer
	Clock    clock.Clock
}

// Decider answers rate limit requests. It is safe for concurrent use.
type Decider struct {
	config Config
	ports  Ports
	stats  Stats
	series *seriesTable
	// unknown counts descriptors in domains that the configuration does not have.
	unknown *seriesTable
	works   sync.Pool
}

// New returns a Decider, or what is wrong with the configuration.
func New(c Config, p Ports) (*Decider, error) {
	if err := c.validate(p); err != nil {
		return nil, err
	}
	return &Decider{config: c, ports: p, series: newSeriesTable(c.MaxSeries), unknown: newSeriesTable(MaxUnknownDomains)}, nil
}

// Stats returns the counts of the service itself, which go on changing.
func (d *Decider) Stats() *Stats { return &d.stats }

// Decide counts the request's hits and answers whether they are within their
// limits. Being over a limit is an answer, not an error. The request is not
// kept.
//
// Errors: fault.Invalid for an empty domain or descriptor list, an override
// without a unit, or too many hits; fault.Unavailable with CodeNoConfiguration
// before any configuration, and without a code when the store fails (unless
// Config.FailureMode says to answer all the same).
func (d *Decider) Decide(ctx context.Context, r *ratelimit.Request) (ratelimit.Decision, error) {
	set, err := d.admit(r)
	if err != nil {
		d.stats.ServiceErrors.Add(1)
		return ratelimit.Decision{}, err
	}
	w := d.take(r)
	defer d.give(w)
	d.resolve(w, set)
	d.addHits(w)
	d.recall(w)
	w.blocked = d.config.StopWhenOver && w.looksAtZero()
	if err := d.count(ctx, w); err != nil {
		return ratelimit.Decision{}, err
	}
	made := d.answer(w)
	if d.ports.Observer != nil {
		d.observe(ctx, w, set, made)
	}
	return made, nil
}

// admit checks what can be known before any rule is looked for.
func (d *Decider) admit(r *ratelimit.Request) (*ruleset.Set, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	set := d.ports.Rules.Current()
	if set == nil {
		return nil, fault.New(fault.Unavailable, CodeNoConfiguration, "no rate limit configuration is loaded")
	}
	return set, nil
}

func check(r *ratelimit.Request) error {
	if r.Domain == "" {
		return fault.New(fault.Invalid, "", "rate limit domain must not be empty")
	}
	if len(r.Descriptors) == 0 {
		return fault.New(fault.Invalid, "", "rate limit descriptor list must not be empty")
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
		return fault.New(fault.Invalid, "", "the unit of a limit override must be known")
	}
	if d.Hits != nil && *d.Hits > ratelimit.MaxHits {
		return fault.Newf(fault.Invalid, "", "hits_addend of a descriptor must be at most %d", uint32(ratelimit.MaxHits))
	}
	return nil
}

// count asks the store, and acts on its failure as the configuration says.
func (d *Decider) count(ctx context.Context, w *work) error {
	if len(w.hits) == 0 {
		return nil
	}
	err := d.add(ctx, d.ports.Counters, w)
	if err == nil {
		d.remember(w)
		return nil
	}
	if errors.Is(ctx.Err(), context.Canceled) { // the caller went away: no failure of the store, and nobody to answer
		return err
	}
	d.stats.StoreErrors.Add(1)
	switch d.config.FailureMode {
	case FailOpen:
		d.stats.FailedOpen.Add(1)
		w.outcome = open
	case FailClosed:
		d.stats.FailedClosed.Add(1)
		w.outcome = closed
	case FailLocal:
		d.stats.CountedLocally.Add(1)
		return d.add(ctx, d.ports.Local, w)
	default:
		return err
	}
	return nil
}

func (d *Decider) add(ctx context.Context, store counter.Store, w *work) error {
	switch {
	case !d.config.StopWhenOver:
		return store.Add(ctx, w.hits, w.after)
	case w.blocked:
		return w.look(ctx, store)
	default:
		return store.AddUnlessOver(ctx, w.hits, w.after)
	}
}
