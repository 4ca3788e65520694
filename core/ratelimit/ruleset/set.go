package ruleset

import (
	"iter"
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Set is a compiled configuration. It never changes, and is safe for concurrent
// use.
type Set struct {
	domains map[ratelimit.Domain]*node
	rules   []*ratelimit.Rule
}

// node is a descriptor of the configuration, or the root of a domain.
type node struct {
	rule *ratelimit.Rule // nil without a limit
	keys map[string]*level
}

// level is all that the children of a node say about one key.
type level struct {
	exact map[string]*node
	wild  *wildcards // nil for none
	any   *node      // for the key alone; nil for none
}

// Match returns the rule that the entries land on, or nil when there is none: an unknown domain, a
// path that leads nowhere, or one whose end has no limit (contract L-1). It goes down one level for
// each entry, and at a level to the exact value, else to the first wildcard of the file that
// matches, else to the key alone (contract L-2). It never tries what it did not choose
// (contract L-13).
//
// It allocates nothing, and its cost does not grow with the number of rules.
func (s *Set) Match(domain ratelimit.Domain, entries []ratelimit.Entry) *ratelimit.Rule {
	n := s.domains[domain]
	for i := range entries {
		if n == nil {
			return nil
		}
		n = n.child(&entries[i])
	}
	if n == nil {
		return nil
	}
	return n.rule
}

func (n *node) child(e *ratelimit.Entry) *node {
	l := n.keys[e.Key]
	if l == nil {
		return nil
	}
	if found := l.exact[e.Value]; found != nil {
		return found
	}
	if l.wild != nil {
		if found := l.wild.first(e.Value); found != nil {
			return found
		}
	}
	return l.any
}

// Has tells whether the configuration has the domain.
func (s *Set) Has(domain ratelimit.Domain) bool {
	_, ok := s.domains[domain]
	return ok
}

// Domains returns the names of all domains, sorted.
func (s *Set) Domains() []ratelimit.Domain {
	return slices.Sorted(maps.Keys(s.domains))
}

// Rules goes through all rules in the order of the configuration.
func (s *Set) Rules() iter.Seq[*ratelimit.Rule] { return slices.Values(s.rules) }

// Len returns how many rules there are.
func (s *Set) Len() int { return len(s.rules) }

// Size returns how many domains there are.
func (s *Set) Size() int { return len(s.domains) }
