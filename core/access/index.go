package access

import (
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// index finds rules by the pattern of a server. Each rule is under some of its conditions only, and all
// of its conditions are checked anyway.
type index struct {
	patterns map[string]bucket
	lengths  []int // of the prefixes among the patterns
}

// bucket has the rules with a pattern, by the keys of their subjects.
type bucket map[string]*lists

// lists have the rules with a pattern and a subject, by what they require of a call. A rule is in those
// of one condition. Each list is in the order of the rules.
type lists struct {
	rest     []int32 // by no condition
	methods  map[Class][]int32
	tools    map[string][]int32
	prefixes map[string][]int32 // of tools
	lengths  []int              // of the prefixes
	networks map[netip.Prefix][]int32
	bits     []int // of the networks
}

// maxSpread is in how many lists one rule is at most.
const maxSpread = 100

// add adds the rule with a number. Rules are added in their order.
func (x *index) add(r *Rule, number int32) {
	if x.patterns == nil {
		x.patterns = map[string]bucket{}
	}
	subjects, servers, conditions := r.spread()
	for _, p := range servers {
		pattern := p.String()
		b := x.patterns[pattern]
		if b == nil {
			b = bucket{}
			x.patterns[pattern] = b
			if prefix, wild := strings.CutSuffix(pattern, "*"); wild {
				x.lengths = addSize(x.lengths, len(prefix))
			}
		}
		for _, subject := range subjects {
			key := subject.String()
			if b[key] == nil {
				b[key] = &lists{}
			}
			b[key].add(r, number, conditions)
		}
	}
}

// of returns the rules of the patterns that select a server.
func (x *index) of(name string) (found []bucket) {
	for _, n := range x.lengths {
		if n <= len(name) {
			if b := x.patterns[name[:n]+"*"]; b != nil {
				found = append(found, b)
			}
		}
	}
	if b := x.patterns[name]; b != nil {
		found = append(found, b)
	}
	return found
}

// spread returns by which subjects, servers and conditions of a call a rule is found. Those that select
// all need no others, and of the rest it leaves out those with the fewest values until the rule is in
// few lists.
func (r *Rule) spread() (subjects []Selector, servers []toolserver.Pattern, conditions Condition) {
	subjects, servers, conditions = r.Subjects, r.Servers, r.narrowest()
	all := func(one Selector) bool { return one.Kind == SelectAnyone || one.Kind == SelectEveryone }
	if slices.ContainsFunc(subjects, all) {
		subjects = []Selector{{Kind: SelectAnyone}}
	}
	if i := slices.IndexFunc(servers, toolserver.Pattern.IsEverything); i >= 0 {
		servers = servers[i : i+1]
	}
	values := max(1, r.values(conditions))
	if len(subjects)*len(servers)*values > maxSpread && values <= min(len(subjects), len(servers)) {
		conditions, values = "", 1
	}
	switch {
	case len(subjects)*len(servers)*values <= maxSpread:
	case len(subjects) <= len(servers):
		subjects = []Selector{{Kind: SelectAnyone}}
	default:
		servers = everything
	}
	if len(subjects)*len(servers)*values > maxSpread {
		conditions = ""
	}
	return subjects, servers, conditions
}

// everything is the pattern of all servers.
var everything = func() []toolserver.Pattern {
	p, _ := toolserver.ParsePattern(toolserver.Everything) // is a pattern
	return []toolserver.Pattern{p}
}()

// narrowest returns the condition of a call by which a rule is found; empty without one.
func (r *Rule) narrowest() Condition {
	for _, c := range [...]Condition{OnTool, OnNetwork, OnMethod} {
		if n := r.values(c); n > 0 && n <= maxSpread {
			return c
		}
	}
	return ""
}

// values returns how many values a rule has for a condition of a call.
func (r *Rule) values(c Condition) int {
	switch c {
	case OnTool:
		return len(r.Tools)
	case OnNetwork:
		return len(r.Networks)
	case OnMethod:
		return len(r.Methods)
	}
	return 0
}

func (l *lists) add(r *Rule, number int32, by Condition) {
	switch by {
	case OnTool:
		for _, tool := range r.Tools {
			if prefix, wild := strings.CutSuffix(tool, "*"); wild {
				l.prefixes = addTo(l.prefixes, prefix, number)
				l.lengths = addSize(l.lengths, len(prefix))
			} else {
				l.tools = addTo(l.tools, tool, number)
			}
		}
	case OnNetwork:
		for _, network := range r.Networks {
			l.networks = addTo(l.networks, network.Masked(), number)
			l.bits = addSize(l.bits, network.Bits())
		}
	case OnMethod:
		for _, class := range r.Methods {
			l.methods = addTo(l.methods, class, number)
		}
	default:
		l.rest = append(l.rest, number)
	}
}

func addTo[K comparable](all map[K][]int32, key K, number int32) map[K][]int32 {
	if all == nil {
		all = map[K][]int32{}
	}
	all[key] = append(all[key], number)
	return all
}

// addSize adds a size to a sorted list that has each once.
func addSize(sizes []int, n int) []int {
	i, found := slices.BinarySearch(sizes, n)
	if found {
		return sizes
	}
	return slices.Insert(sizes, i, n)
}

// fitting calls try with the lists of the rules that a question may fit.
func (l *lists) fitting(q *Question, try func(list []int32)) {
	try(l.rest)
	if l.methods != nil {
		try(l.methods[q.Call.Class])
	}
	if tool := q.Call.Tool(); tool != "" {
		if l.tools != nil {
			try(l.tools[tool])
		}
		for _, n := range l.lengths {
			if n <= len(tool) {
				try(l.prefixes[tool[:n]])
			}
		}
	}
	for _, n := range l.bits {
		if network, err := q.From.Unmap().WithZone("").Prefix(n); err == nil { // of the other version of IP
			try(l.networks[network])
		}
	}
}

// all returns all rules, some of them more than once.
func (l *lists) all() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		each := func(list []int32) bool {
			for _, i := range list {
				if !yield(i) {
					return false
				}
			}
			return true
		}
		_ = each(l.rest) && eachOf(l.methods, each) && eachOf(l.tools, each) && eachOf(l.prefixes, each) && eachOf(l.networks, each)
	}
}

func eachOf[K comparable](all map[K][]int32, each func([]int32) bool) bool {
	for _, list := range all {
		if !each(list) {
			return false
		}
	}
	return true
}
