// Package reload keeps the rules in force: it follows a rule source, compiles each configuration
// and puts it in force as a whole. After an invalid configuration the one before stays in force.
package reload

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/rulesource"
)

// The events of Rules, which reports them one at a time.
type (
	// InForce means that a configuration is in force.
	InForce struct{ Domains, Rules int }
	// Rejected means that a configuration is invalid. Err is ruleset.Faults, one on each line.
	Rejected struct{ Err error }
)

// Rules holds the rules in force. It is safe for concurrent use.
type Rules struct {
	options  ruleset.Options
	reporter report.Reporter

	applyMutex sync.Mutex
	current    atomic.Pointer[ruleset.Set]
	loaded     atomic.Uint64
	refused    atomic.Uint64
}

// New returns Rules without any in force.
func New(o ruleset.Options, r report.Reporter) *Rules {
	return &Rules{options: o, reporter: r}
}

// Current returns the rules in force, or nil before a first configuration.
func (r *Rules) Current() *ruleset.Set { return r.current.Load() }

// Loaded returns how many configurations came into force (config_load_success).
func (r *Rules) Loaded() uint64 { return r.loaded.Load() }

// Refused returns how many configurations were refused (config_load_error).
func (r *Rules) Refused() uint64 { return r.refused.Load() }

// Follow applies the configurations of the source until ctx is done, and then returns nil. It
// returns an error when the source cannot be watched.
func (r *Rules) Follow(ctx context.Context, source rulesource.Source) error {
	return source.Watch(ctx, r.Apply)
}

// Apply puts a configuration in force. If it is invalid, Apply returns ruleset.Faults and keeps the
// one before.
func (r *Rules) Apply(sources []ruleset.Source) error {
	r.applyMutex.Lock()
	defer r.applyMutex.Unlock()
	o := r.options
	o.Previous = r.current.Load()
	set, err := ruleset.Compile(sources, o)
	if err != nil {
		r.refused.Add(1)
		r.reporter.Report(Rejected{err})
		return err
	}
	r.current.Store(set)
	r.loaded.Add(1)
	r.reporter.Report(InForce{set.DomainCount(), set.RuleCount()})
	return nil
}
