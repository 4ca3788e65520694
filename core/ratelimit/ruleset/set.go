// Package ruleset compiles configuration into an immutable tree of rules and finds the rule that a
// descriptor matches. It reads no files (adapters of rulesource do) and counts nothing (decide
// does).
package ruleset

import (
	"iter"
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Set is a compiled configuration. It never changes, and is safe for concurrent use.
type Set struct {
	domains map[ratelimit.Domain]*node
	rules   []*ratelimit.Rule
}

// node is a descriptor of the configuration, or the root of a domain.
type node struct {
	rule    *ratelimit.Rule // nil without a limit
	keys    map[string]*level
	written *Text // the value as written, at the position of the key; nil for the root of a domain
}

// level holds the children of a node that have one key.
type level struct {
	exact   map[string]*node
	wild    *wildcards // nil without wildcards
	keyOnly *node      // matches every value of the key; nil if the node does not exist
}

// Match returns the rule that the entries match, or nil when there is no rule: an unknown domain, a
// path without a descriptor, or a descriptor without a limit (contract L-1). It goes down one level
// for each entry, to the exact value, else to the first wildcard of the file that matches, else to
// the descriptor with the key alone (contract L-2). It never goes back to try another one
// (contract L-13).
//
// It allocates nothing, and its cost does not grow with the number of rules.
func (s *Set) Match(domain ratelimit.Domain, entries []ratelimit.Entry) *ratelimit.Rule {
	n := s.domains[domain]
	for i := range entries {
		if n == nil {
			return nil
		}
		n = n.findChild(&entries[i])
	}
	if n == nil {
		return nil
	}
	return n.rule
}

// findChild returns the child that an entry matches, or nil.
func (n *node) findChild(e *ratelimit.Entry) *node {
	l := n.keys[e.Key]
	if l == nil {
		return nil
	}
	if found := l.exact[e.Value]; found != nil {
		return found
	}
	if l.wild != nil {
		if found := l.wild.firstMatch(e.Value); found != nil {
			return found
		}
	}
	return l.keyOnly
}

// HasDomain reports whether the configuration has the domain.
func (s *Set) HasDomain(domain ratelimit.Domain) bool {
	_, ok := s.domains[domain]
	return ok
}

// Domains returns the names of all domains, sorted.
func (s *Set) Domains() []ratelimit.Domain {
	return slices.Sorted(maps.Keys(s.domains))
}

// Rules returns an iterator over all rules in the order of the configuration.
func (s *Set) Rules() iter.Seq[*ratelimit.Rule] { return slices.Values(s.rules) }

// RuleCount returns the number of rules.
func (s *Set) RuleCount() int { return len(s.rules) }

// DomainCount returns the number of domains.
func (s *Set) DomainCount() int { return len(s.domains) }

// Position is a place in the configuration. Line and Column count from 1; zero means not known.
type Position struct {
	File   string
	Line   int
	Column int
}

// Text is a text of the configuration and its position.
type Text struct {
	Value string
	At    Position
}

// Source is one file, or one resource of a management server: a domain and its descriptors, as
// written. Compile validates it.
type Source struct {
	At          Position
	Domain      Text
	Descriptors []Descriptor
	// Faults are the mistakes in the form of the source that its reader found: unknown keys, a
	// number in place of a list. Compile returns them together with its own.
	Faults []Fault
	// Unread reports that the source could not be read as far as its domain. Compile then does not
	// report a missing domain.
	Unread bool
}

// Descriptor is one descriptor of the configuration, as written.
type Descriptor struct {
	At    Position
	Key   Text
	Value Text // optional; without it the rule matches every value of the key
	Limit *Limit
	// Shadow is shadow_mode next to the limit, as in the Envoy service; optional.
	Shadow         *bool
	DetailedMetric bool
	ValueToMetric  bool
	ShareThreshold bool
	QuotaMode      bool
	Metadata       ratelimit.Metadata // optional
	Descriptors    []Descriptor
}

// Limit is a rate_limit block, as written.
type Limit struct {
	At        Position
	Unit      *Text
	Requests  *Requests
	Unlimited bool
	Name      ratelimit.Name
	Replaces  []Text
	Shadow    *bool // shadow_mode inside the block; optional
	Algorithm *Text
	Burst     *Requests
	Lease     *Text
}

// Requests is requests_per_unit, as written.
type Requests struct {
	Count uint32
	At    Position
}
