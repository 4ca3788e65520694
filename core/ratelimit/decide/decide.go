// Package decide answers whether a request is within its limits: it finds the rules, counts in the
// counter store and keeps the statistics. It does not load rules and does not know the protocol of
// the call.
package decide

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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

// Config are the settings of a Decider.
type Config struct {
	// Prefix is the beginning of every key. ratelimit.ValidPrefix must hold.
	Prefix string
	// NearLimitRatio is the part of a limit above which hits are near it, from 0 to 1.
	NearLimitRatio float64
	// Shadow answers every request as OK (contract L-9).
	Shadow bool
	// StopWhenOver adds no hits within their limit when others of the request are over theirs
	// (contract L-10).
	StopWhenOver bool
	// Quota puts overrides, and descriptors without a rule, in quota mode; rules have
	// their own setting.
	Quota bool
	// JitterMax is the longest time that a counter outlives its window, in whole seconds, so that
	// not all counters end at once.
	JitterMax   time.Duration
	FailureMode FailureMode
	// Leases is what a rule means that does not say lease.
	Leases bool
	// MaxSeries is the greatest number of series by value; other hits are counted on the rule
	// (contract L-48).
	MaxSeries int
	// MaxDescriptors is the greatest number of descriptors of a request; 0 means no limit
	// (contract L-26).
	MaxDescriptors int
	// MaxDescriptorsName is the name of MaxDescriptors in errors.
	MaxDescriptorsName string
}

// MostDescriptors is the greatest MaxDescriptors.
const MostDescriptors = 1_000_000

// Validate returns an error that begins with the name of the first field that is out of range.
func (c Config) Validate() error {
	switch {
	case !ratelimit.ValidPrefix(c.Prefix):
		return fmt.Errorf("Prefix: more than %d characters, or not printable ASCII without spaces", ratelimit.MaxPrefix)
	case !(c.NearLimitRatio >= 0 && c.NearLimitRatio <= 1):
		return fmt.Errorf("NearLimitRatio: %v is not in the range 0 to 1", c.NearLimitRatio)
	case c.JitterMax < 0:
		return fmt.Errorf("JitterMax: %d is negative", c.JitterMax/time.Second)
	case c.MaxSeries < 0:
		return fmt.Errorf("MaxSeries: %d is negative", c.MaxSeries)
	case c.MaxDescriptors < 0 || c.MaxDescriptors > MostDescriptors:
		return fmt.Errorf("MaxDescriptors: %d is not in the range 0 to %d", c.MaxDescriptors, MostDescriptors)
	}
	return nil
}

// validateWith returns an error for the first setting or port that is wrong.
func (c Config) validateWith(p Ports) error {
	switch {
	case p.Rules == nil, p.Counters == nil, p.Clock == nil:
		return errors.New("rules, counters and clock must be given")
	case c.FailureMode == FailLocal && p.Local == nil:
		return errors.New("failure mode local needs a local store")
	}
	return c.Validate()
}

// FailureMode is the behaviour when the counter store fails (contract L-29).
type FailureMode uint8

// The failure modes.
const (
	FailError  FailureMode = iota // the call fails
	FailOpen                      // every descriptor is within its limit
	FailClosed                    // every descriptor with a limit is over it
	FailLocal                     // a store in this process counts
)

// CountsOn reports whether the API's own limits are counted in the process while the store fails.
func (m FailureMode) CountsOn() bool { return m == FailLocal || m == FailOpen }

// ParseFailureMode returns the mode with the given name: error, open, closed or local.
func ParseFailureMode(name string) (FailureMode, error) {
	for i, known := range [...]string{"error", "open", "closed", "local"} {
		if name == known {
			return FailureMode(i), nil
		}
	}
	return FailError, errors.New("must be error, open, closed or local")
}

// handleStoreFailure decides the descriptors of a request whose counters could not be counted,
// according to the failure mode (contract L-29). It returns cause in the mode FailError, and the
// error of the local store in the mode FailLocal.
func (d *Decider) handleStoreFailure(ctx context.Context, w *work, cause error) error {
	d.stats.StoreErrors.Add(1)
	switch d.config.FailureMode {
	case FailOpen:
		d.stats.FailedOpen.Add(1)
		w.outcome = allWithin
	case FailClosed:
		d.stats.FailedClosed.Add(1)
		w.outcome = allOver
	case FailLocal:
		d.stats.CountedLocally.Add(1)
		return d.countIn(ctx, d.ports.Local, w)
	default:
		return cause
	}
	return nil
}
