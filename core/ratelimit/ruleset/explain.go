package ruleset

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Miss is the reason why entries match no rule.
type Miss struct {
	Reason Reason
	// Level is the index of the entry at which the search ended. For NoLimit it is the number of
	// entries.
	Level int
}

// Reason is the kind of a Miss.
type Reason uint8

// The reasons. The zero value means that there is a rule.
const (
	Matched       Reason = iota
	UnknownDomain        // the configuration does not have the domain
	UnknownKey           // no descriptor at this level has the key
	UnknownValue         // descriptors have the key, and no descriptor matches the value
	TooDeep              // there are no descriptors at this level
	NoLimit              // the descriptor at the end has no rate_limit
)

// Explain returns why Match returns no rule. It follows the same path as Match. It serves
// diagnosis; decisions use Match.
func (s *Set) Explain(domain ratelimit.Domain, entries []ratelimit.Entry) Miss {
	n := s.domains[domain]
	if n == nil {
		return Miss{Reason: UnknownDomain}
	}
	for i := range entries {
		child := n.findChild(&entries[i])
		switch {
		case child != nil:
			n = child
		case len(n.keys) == 0:
			return Miss{Reason: TooDeep, Level: i}
		case n.keys[entries[i].Key] == nil:
			return Miss{Reason: UnknownKey, Level: i}
		default:
			return Miss{Reason: UnknownValue, Level: i}
		}
	}
	if n.rule == nil {
		return Miss{Reason: NoLimit, Level: len(entries)}
	}
	return Miss{}
}

// Phrase says in words why no rule matches entries; it is empty if one does. quote returns a text
// of the request between quotes.
func (m Miss) Phrase(entries []ratelimit.Entry, quote func(string) string) string {
	switch m.Reason {
	case UnknownDomain:
		return "the domain is not configured"
	case UnknownKey:
		return "no rule has the key " + quote(entries[m.Level].Key) + " at level " + strconv.Itoa(m.Level+1)
	case UnknownValue:
		e := entries[m.Level]
		return "no rule of the key " + quote(e.Key) + " at level " + strconv.Itoa(m.Level+1) + " has the value " +
			quote(e.Value)
	case TooDeep:
		return "the rules end at level " + strconv.Itoa(m.Level) + ", but the descriptor has more entries"
	case NoLimit:
		return "the rules have no rate_limit at level " + strconv.Itoa(m.Level)
	case Matched:
	}
	return ""
}

// MaxTried is the greatest number of descriptors that Tried returns.
const MaxTried = 1000

// Kind says how the value of a descriptor is written.
type Kind string

// The kinds, in the order in which they are tried (contract L-2).
const (
	Exact    Kind = "exact"
	Wildcard Kind = "wildcard"
	KeyAlone Kind = "key"
)

// Tried is a descriptor of the configuration that was compared with an entry of a request.
type Tried struct {
	Level   int             // index of the entry
	Entry   ratelimit.Entry // of the request
	Kind    Kind
	Pattern string // the value of the descriptor as written; empty for KeyAlone
	At      Position
	Matched bool   // the search went on with this descriptor
	Why     string // a phrase in lower case that says why, or why not
}

// Tried returns the descriptors that have the keys of the entries, at each level on the path that
// Match takes: at first those with an exact value, then the wildcards, then the one with the key
// alone, each in the order of the configuration. It returns at most MaxTried, and whether there are
// more. It serves diagnosis, like Explain.
func (s *Set) Tried(domain ratelimit.Domain, entries []ratelimit.Entry) (list []Tried, more bool) {
	n := s.domains[domain]
	for i := range entries {
		if n == nil || n.keys[entries[i].Key] == nil {
			break
		}
		taken := n.findChild(&entries[i])
		for _, t := range n.keys[entries[i].Key].tried(entries[i].Value, taken) {
			if len(list) == MaxTried {
				return list, true
			}
			t.Level, t.Entry = i, entries[i]
			list = append(list, t)
		}
		n = taken
	}
	return list, false
}

// tried returns all descriptors of a level, compared with a value. taken is the one that matches.
func (l *level) tried(value string, taken *node) []Tried {
	list := make([]Tried, 0, len(l.exact)+1)
	for _, n := range slices.SortedFunc(maps.Values(l.exact), byPosition) {
		t := newTried(n, Exact, n == taken)
		t.Why = "the request has another value"
		if t.Matched {
			t.Why = "the value is equal"
		}
		list = append(list, t)
	}
	exact := l.exact[value] != nil
	if l.wild != nil {
		for _, n := range l.wild.nodes() {
			t := newTried(n, Wildcard, n == taken)
			t.Why = whyWildcard(t.Matched, matchesPattern(n.written.Value, value), exact)
			list = append(list, t)
		}
	}
	if l.keyOnly != nil {
		t := newTried(l.keyOnly, KeyAlone, l.keyOnly == taken)
		switch {
		case t.Matched:
			t.Why = "no value and no pattern matches, so the key alone does"
		case exact:
			t.Why = "an equal value comes first"
		default:
			t.Why = "a pattern that matches comes first"
		}
		list = append(list, t)
	}
	return list
}

func newTried(n *node, kind Kind, matched bool) Tried {
	return Tried{Kind: kind, Pattern: n.written.Value, At: n.written.At, Matched: matched}
}

func whyWildcard(taken, matches, exact bool) string {
	switch {
	case taken:
		return "the pattern matches, and no exact value does"
	case !matches:
		return "the pattern does not match"
	case exact:
		return "the pattern matches, but an equal value comes first"
	default:
		return "the pattern matches, but one before it does too"
	}
}

// byPosition orders nodes by their place in the configuration, and those without one by their
// value.
func byPosition(a, b *node) int {
	x, y := a.written, b.written
	return cmp.Or(strings.Compare(x.At.File, y.At.File), cmp.Compare(x.At.Line, y.At.Line),
		cmp.Compare(x.At.Column, y.At.Column), strings.Compare(x.Value, y.Value))
}

// nodes returns the nodes of all patterns, in the order in which they were added.
func (w *wildcards) nodes() []*node {
	ends := make([]state, 0, w.patterns)
	for _, s := range w.states {
		if s.order != noPattern {
			ends = append(ends, s)
		}
	}
	slices.SortFunc(ends, func(a, b state) int { return cmp.Compare(a.order, b.order) })
	list := make([]*node, len(ends))
	for i, s := range ends {
		list[i] = s.node
	}
	return list
}

// matchesPattern reports whether one pattern matches a value.
func matchesPattern(pattern, value string) bool {
	w := newWildcards()
	w.addPattern(pattern, &node{})
	return w.firstMatch(value) != nil
}
