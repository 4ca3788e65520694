package access

import (
	"hash/maphash"
	"iter"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// index finds rules by the pattern of a server. Each rule is under some of its conditions only, and all
// of its conditions are checked anyway.
type index struct {
	names    map[string]bucket // of patterns that are names
	prefixes map[string]bucket // of those that end with "*", without it
	lengths  []int             // of the prefixes
}

// bucket has the rules with a pattern, by the keys of their subjects.
type bucket map[string]*lists

// lists have the rules with a pattern and a subject, by what they require of a call. A rule is in those
// of one condition. Each list is in the order of the rules.
type lists struct {
	rest     []int32 // by no condition
	methods  map[Class][]int32
	tools    hashed
	prefixes hashed // of tools
	clients  hashed
	lengths  []int // of the prefixes
	networks map[netip.Prefix][]int32
	bits     []int                         // of the networks
	hints    map[toolserver.Traits][]int32 // by the traits of which the hints hold
}

// hashed has the numbers of rules by texts: each is the upper half of the hash of a text, and the number,
// so that a rule with hundreds of tools needs little memory. Another text may have the same hash.
type hashed []uint64

var hashSeed = maphash.MakeSeed()

func hashOf(text string) uint64 { return maphash.String(hashSeed, text) >> 32 << 32 }

func (h *hashed) add(text string, number int32) { *h = append(*h, hashOf(text)|uint64(number)) }

// each calls try with the rules of a text, in their order, until it returns false.
func (h hashed) each(text string, try func(int32) bool) {
	if len(h) == 0 {
		return
	}
	hash := hashOf(text)
	for i, _ := slices.BinarySearch(h, hash); i < len(h) && h[i]>>32<<32 == hash && try(int32(h[i]-hash)); i++ {
	}
}

// The bounds of what one rule is under: subjects with servers, and these with values of a condition.
const (
	maxSpread = 100
	maxValues = 2000
)

// add adds the rule with a number. Rules are added in their order.
func (x *index) add(r *Rule, number int32) {
	if x.names == nil {
		x.names, x.prefixes = map[string]bucket{}, map[string]bucket{}
	}
	subjects, servers, conditions := r.spread()
	for _, p := range servers {
		key, wild := strings.CutSuffix(p.String(), "*")
		of := x.names
		if wild {
			of, x.lengths = x.prefixes, addSize(x.lengths, len(key))
		}
		b := of[key]
		if b == nil {
			b = bucket{}
			of[key] = b
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

// sort prepares the index for questions, after all rules are added.
func (x *index) sort() {
	for _, all := range [...]map[string]bucket{x.names, x.prefixes} {
		for _, b := range all {
			for _, l := range b {
				slices.Sort(l.tools)
				slices.Sort(l.prefixes)
				slices.Sort(l.clients)
			}
		}
	}
}

// of returns the rules of the patterns that select a server.
func (x *index) of(name string) iter.Seq[bucket] {
	return func(yield func(bucket) bool) {
		for _, n := range x.lengths {
			if n > len(name) {
				break
			}
			if b := x.prefixes[name[:n]]; b != nil && !yield(b) {
				return
			}
		}
		if b := x.names[name]; b != nil {
			yield(b)
		}
	}
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
	for {
		of, at := len(subjects), len(servers)
		fewer, subjectsGo := at, of > 1 && (of <= at || at == 1)
		if subjectsGo {
			fewer = of
		}
		switch {
		case of*at <= maxSpread && of*at*values <= maxValues:
			return subjects, servers, conditions
		case of*at <= maxSpread && values <= fewer:
			conditions, values = "", 1
		case subjectsGo:
			subjects = []Selector{{Kind: SelectAnyone}}
		default:
			servers = everything
		}
	}
}

// everything is the pattern of all servers.
var everything = func() []toolserver.Pattern {
	p, _ := toolserver.ParsePattern(toolserver.Everything) // is a pattern
	return []toolserver.Pattern{p}
}()

// narrowest returns the condition of a call by which a rule is found; empty without one.
func (r *Rule) narrowest() Condition {
	for _, c := range [...]Condition{OnClient, OnTool, OnNetwork, OnHint, OnMethod} {
		if r.values(c) > 0 {
			return c
		}
	}
	return ""
}

// values returns how many values a rule has for a condition of a call.
func (r *Rule) values(c Condition) int {
	switch c {
	case OnClient:
		return len(r.Clients)
	case OnTool:
		return len(r.Tools)
	case OnNetwork:
		return len(r.Networks)
	case OnHint:
		if len(r.Hints) > 0 {
			return len(possible(r.Hints))
		}
	case OnMethod:
		return len(r.Methods)
	}
	return 0
}

func (l *lists) add(r *Rule, number int32, by Condition) {
	switch by {
	case OnClient:
		for _, client := range r.Clients {
			l.clients.add(client, number)
		}
	case OnTool:
		for _, tool := range r.Tools {
			if prefix, wild := strings.CutSuffix(tool, "*"); wild {
				l.prefixes.add(prefix, number)
				l.lengths = addSize(l.lengths, len(prefix))
			} else {
				l.tools.add(tool, number)
			}
		}
	case OnNetwork:
		for _, network := range r.Networks {
			l.networks = addTo(l.networks, network.Masked(), number)
			l.bits = addSize(l.bits, network.Bits())
		}
	case OnHint:
		for _, t := range possible(r.Hints) {
			l.hints = addTo(l.hints, t, number)
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

// fitting calls try with the rules that a question about a tool with traits may fit: with those of each list in their order, until
// it returns false.
func (l *lists) fitting(q *Question, of toolserver.Traits, try func(int32) bool) {
	tryAll(l.rest, try)
	if l.hints != nil {
		tryAll(l.hints[of], try)
	}
	if l.methods != nil {
		tryAll(l.methods[q.Call.Class], try)
	}
	if tool := q.Call.Tool(); tool != "" {
		l.tools.each(tool, try)
		for _, n := range l.lengths {
			if n <= len(tool) {
				l.prefixes.each(tool[:n], try)
			}
		}
	}
	if q.Subject.client != "" {
		l.clients.each(q.Subject.client, try)
	}
	for _, n := range l.bits {
		if network, err := q.From.Unmap().WithZone("").Prefix(n); err == nil { // of the other version of IP
			tryAll(l.networks[network], try)
		}
	}
}

// tryAll calls try with the rules of a list until it returns false, which it then returns.
func tryAll(list []int32, try func(int32) bool) bool {
	for _, i := range list {
		if !try(i) {
			return false
		}
	}
	return true
}

// all returns all rules, some of them more than once.
func (l *lists) all() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		_ = tryAll(l.rest, yield) && eachOf(l.methods, yield) && eachOf(l.networks, yield) && eachOf(l.hints, yield) &&
			eachHashed(l.tools, yield) && eachHashed(l.prefixes, yield) &&
			eachHashed(l.clients, yield)
	}
}

func eachOf[K comparable](all map[K][]int32, try func(int32) bool) bool {
	for _, list := range all {
		if !tryAll(list, try) {
			return false
		}
	}
	return true
}

func eachHashed(all hashed, try func(int32) bool) bool {
	for _, h := range all {
		if !try(int32(h & math.MaxUint32)) {
			return false
		}
	}
	return true
}
