package simulate

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// MaxKeys is the greatest number of keys of a Report.
const MaxKeys = 100

// Bounds of what is kept about keys.
const (
	maxKnownKeys  = 500_000
	maxDescriptor = 200 // bytes
)

// Report compares the answers of two sets of rules to the same requests.
type Report struct {
	Calls                       uint64 // requests
	OldRefused, NewRefused      uint64
	NewlyRefused, NewlyAdmitted uint64
	// Rules are the rules of both sets: those of the new one, in its order, then those that only
	// the old one has. A rule is the same in both if domain and path are.
	Rules []RuleChange
	// Unused are the new rules that matched no descriptor, in their order.
	Unused []*ratelimit.Rule
	// Keys are the keys that one set refused more often than the other, at most MaxKeys, those with
	// the greatest difference first.
	Keys []KeyChange
	// KeysLost reports that more keys were refused than are kept: Keys may lack some, and their
	// numbers may be too small.
	KeysLost bool
}

// RuleChange is how often a rule refused descriptors.
type RuleChange struct {
	Domain ratelimit.Domain
	Path   []string // Rule.Written
	// Calls are the descriptors that the rule decided about in one of the sets or in both.
	Calls                  uint64
	OldRefused, NewRefused uint64
}

// KeyChange is how often a descriptor was refused.
type KeyChange struct {
	Domain                 ratelimit.Domain
	Descriptor             string // "key=value,key=value"; cut after 200 bytes
	OldRefused, NewRefused uint64
}

// difference returns how many more times one set refused the key than the other.
func (k *KeyChange) difference() uint64 {
	return max(k.OldRefused, k.NewRefused) - min(k.OldRefused, k.NewRefused)
}

// tally counts the answers of two sets of rules.
type tally struct {
	seen    Report // the counts of requests
	changes []*RuleChange
	byRule  map[*ratelimit.Rule]*ruleCount
	newest  []*ratelimit.Rule // the rules of the new set
	keys    map[keyHash]*KeyChange
	domains map[ratelimit.Domain]ratelimit.Domain // of keys
	crowded bool                                  // makeRoom made little room
	seeds   [2]maphash.Seed
	text    []byte // of the last key; its memory is used again
}

// ruleCount is what is counted of a rule of one of the sets.
type ruleCount struct {
	change  *RuleChange // that of the rule of the same path in the other set too
	matched bool
}

type keyHash [2]uint64

func newTally(r Rules) tally {
	t := tally{
		byRule: make(map[*ratelimit.Rule]*ruleCount, r.Old.RuleCount()+r.New.RuleCount()),
		keys:   map[keyHash]*KeyChange{}, domains: map[ratelimit.Domain]ratelimit.Domain{}, seeds: [2]maphash.Seed{
			maphash.MakeSeed(), maphash.MakeSeed(),
		},
	}
	byPath := map[string]*RuleChange{}
	add := func(rule *ratelimit.Rule) {
		name := string(rule.Domain) + "\x00" + strings.Join(rule.Written, "\x00")
		change := byPath[name]
		if change == nil {
			change = &RuleChange{Domain: rule.Domain, Path: rule.Written}
			byPath[name] = change
			t.changes = append(t.changes, change)
		}
		t.byRule[rule] = &ruleCount{change: change}
	}
	for rule := range r.New.Rules() {
		t.newest = append(t.newest, rule)
		add(rule)
	}
	for rule := range r.Old.Rules() {
		add(rule)
	}
	return t
}

// addCall counts a request that was or was not refused by each set.
func (t *tally) addCall(before, after bool) {
	if before {
		t.seen.OldRefused++
	}
	if after {
		t.seen.NewRefused++
	}
	switch {
	case after && !before:
		t.seen.NewlyRefused++
	case before && !after:
		t.seen.NewlyAdmitted++
	}
}

// addDescriptor counts the results for a descriptor by the old and the new set.
func (t *tally) addDescriptor(domain ratelimit.Domain, entries []ratelimit.Entry, before, after result) {
	was, is := t.decidedBy(before), t.decidedBy(after)
	if was != nil {
		was.Calls++
		was.OldRefused += one(before.refused)
	}
	if is != nil {
		if is != was {
			is.Calls++
		}
		is.NewRefused += one(after.refused)
	}
	if before.refused || after.refused {
		if k := t.key(domain, entries); k != nil {
			k.OldRefused += one(before.refused)
			k.NewRefused += one(after.refused)
		}
	}
}

// decidedBy returns the counts of the rule that decided, or nil without one.
func (t *tally) decidedBy(r result) *RuleChange {
	if r.matched != nil {
		t.byRule[r.matched].matched = true
	}
	if r.decided == nil {
		return nil
	}
	return t.byRule[r.decided].change
}

func one(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// key returns the counts of a key, or nil if there is no room for it.
func (t *tally) key(domain ratelimit.Domain, entries []ratelimit.Entry) *KeyChange {
	t.text = t.text[:0]
	for i := range entries {
		if i > 0 {
			t.text = append(t.text, ',')
		}
		t.text = append(append(append(t.text, entries[i].Key...), '='), entries[i].Value...)
	}
	var hash keyHash
	for i, seed := range t.seeds {
		hash[i] = maphash.Bytes(seed, t.text) ^ maphash.String(seed, string(domain))*0x9E3779B97F4A7C15
	}
	if k := t.keys[hash]; k != nil {
		return k
	}
	if len(t.keys) >= maxKnownKeys && !t.makeRoom() {
		return nil
	}
	k := &KeyChange{Domain: t.ownDomain(domain), Descriptor: cutText(t.text)}
	t.keys[hash] = k
	return k
}

// ownDomain returns a copy of a domain that does not keep the memory of its request. Only domains
// with rules refuse, so there are few.
func (t *tally) ownDomain(domain ratelimit.Domain) ratelimit.Domain {
	own, ok := t.domains[domain]
	if !ok {
		own = ratelimit.Domain(strings.Clone(string(domain)))
		t.domains[own] = own
	}
	return own
}

// makeRoom forgets the keys that both sets have refused equally often, unless that made little room
// before. It reports whether there is room.
func (t *tally) makeRoom() bool {
	t.seen.KeysLost = true
	if t.crowded {
		return false
	}
	maps.DeleteFunc(t.keys, func(_ keyHash, k *KeyChange) bool { return k.difference() == 0 })
	t.crowded = len(t.keys) > maxKnownKeys*9/10
	return len(t.keys) < maxKnownKeys
}

// cutText returns at most maxDescriptor bytes of a text, and no part of a character.
func cutText(text []byte) string {
	if len(text) <= maxDescriptor {
		return string(text)
	}
	return strings.ToValidUTF8(string(text[:maxDescriptor-len("…")]), "") + "…"
}

// report returns the report about a number of requests.
func (t *tally) report(calls uint64) Report {
	r := t.seen
	r.Calls = calls
	for _, c := range t.changes {
		r.Rules = append(r.Rules, *c)
	}
	for _, rule := range t.newest {
		if !t.byRule[rule].matched {
			r.Unused = append(r.Unused, rule)
		}
	}
	for _, k := range t.keys {
		if k.difference() > 0 {
			r.Keys = append(r.Keys, *k)
		}
	}
	slices.SortFunc(r.Keys, func(a, b KeyChange) int {
		return cmp.Or(cmp.Compare(b.difference(), a.difference()), cmp.Compare(a.Domain, b.Domain),
			cmp.Compare(a.Descriptor, b.Descriptor))
	})
	r.Keys = slices.Clip(r.Keys[:min(len(r.Keys), MaxKeys)])
	return r
}
