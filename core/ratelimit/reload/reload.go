// Package reload keeps the rules that are in force: it follows a rule source,
// checks what it delivers and swaps it in whole. A wrong configuration leaves
// the one before it in force.
package reload

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/rulesource"
)

// Reporter hears of every configuration. Its methods are called one at a time.
type Reporter interface {
	// Loaded tells that a configuration is in force.
	Loaded(domains, rules int)
	// Refused tells that one is not, with all that is wrong: ruleset.Faults,
	// one a line.
	Refused(err error)
}

// Rules holds the rules in force. It is safe for concurrent use.
type Rules struct {
	options  ruleset.Options
	reporter Reporter

	apply   sync.Mutex
	current atomic.Pointer[ruleset.Set]
	loaded  atomic.Uint64
	refused atomic.Uint64
}

// New returns Rules without any in force.
func New(o ruleset.Options, r Reporter) *Rules {
	return &Rules{options: o, reporter: r}
}

// Current returns the rules in force; nil before any were.
func (r *Rules) Current() *ruleset.Set { return r.current.Load() }

// Loaded returns how many configurations came into force (config_load_success).
func (r *Rules) Loaded() uint64 { return r.loaded.Load() }

// Refused returns how many were refused (config_load_error).
func (r *Rules) Refused() uint64 { return r.refused.Load() }

// Follow applies what the source delivers until ctx is done; it returns nil
// then, and else why the source cannot be watched.
func (r *Rules) Follow(ctx context.Context, source rulesource.Source) error {
	return source.Watch(ctx, r.Apply)
}

// Apply brings a configuration into force, or returns ruleset.Faults and keeps
// the one before.
func (r *Rules) Apply(sources []ruleset.Source) error {
	r.apply.Lock()
	defer r.apply.Unlock()
	o := r.options
	o.Previous = r.current.Load()
	set, err := ruleset.Compile(sources, o)
	if err != nil {
		r.refused.Add(1)
		r.reporter.Refused(err)
		return err
	}
	r.current.Store(set)
	r.loaded.Add(1)
	r.reporter.Loaded(len(set.Domains()), set.Len())
	return nil
}
