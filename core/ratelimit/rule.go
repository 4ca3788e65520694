package ratelimit

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// Name is the name by which one limit replaces another.
type Name string

// Metadata is the part of a rule that answers return as dynamic metadata: its numbers are of
// type jsonvalue.Number. It does not change after it is made.
type Metadata = jsonvalue.Object

// Rule is a compiled rule: what applies to requests that match one descriptor of the configuration.
// Only its Hits change after it is compiled.
//
// The fields that every decision reads come first: with many rules, fetching them from memory is
// what a rule costs.
type Rule struct {
	Limit     Limit // zero when Unlimited
	Unlimited bool
	Shadow    bool // an over-limit outcome is answered as OK (contract L-8)
	Quota     bool // fails the request only together with all other quota rules
	Lease     LeaseMode

	// Hits are the statistics of the rule. They are kept over reloads as long as the path of the
	// rule stays.
	Hits *Hits
	// Shared is nil, or has for each level the pattern whose values share one counter; empty where
	// each value has its own (share_threshold).
	Shared []string
	// ShowValue is nil, or reports for each level whether statistics contain the value of the
	// request (detailed_metric, value_to_metric).
	ShowValue []bool
	Replaces  []Name // contains neither an empty name nor Name
	Name      Name   // empty without a name

	Domain Domain
	// Path is the name of the rule in statistics: key_value of each level, joined by dots
	// (contract L-44).
	Path string
	// Levels is the key_value of each level by itself.
	Levels []string
	// Written is each level as the configuration has it: "key=value", with the pattern as written,
	// or "key".
	Written []string
	File    string // that has the rule
	Line    int    // of the key; counts from 1, and is 0 if it is not known
	// Metadata is returned while the limit is not exceeded, if answers contain metadata; optional.
	Metadata Metadata
}

// Hits are the statistics of one rule: counts of hits since the start. They are safe for concurrent
// use. The counters of a rule share a cache line, which its decisions on all cores write, so a hit
// that is within its limit is counted in one of them only.
type Hits struct {
	Within  atomic.Uint64 // hits that were answered as OK
	Refused atomic.Uint64 // all other hits: of requests that went over the limit, also in shadow mode
	Over    atomic.Uint64 // hits over the limit
	Near    atomic.Uint64 // hits over the near-limit ratio and within the limit
	Shadow  atomic.Uint64 // hits over the limit that shadow mode let pass
	// OverLocal are the hits over the limit that the local cache answered.
	OverLocal atomic.Uint64
	// Keys are the keys with the most hits. Of the statistics of single values it is empty.
	Keys HotKeys
}

// Total returns the number of all hits.
func (h *Hits) Total() uint64 { return h.Within.Load() + h.Refused.Load() }

// AppendCounterEntries appends the entries that name the counter of a descriptor: those of the
// request, with the pattern in place of each value that shares a counter. r may be nil.
func (r *Rule) AppendCounterEntries(dst, entries []Entry) []Entry {
	dst = append(dst, entries...)
	if r == nil || r.Shared == nil {
		return dst
	}
	for i, pattern := range r.Shared {
		if pattern != "" {
			dst[len(dst)-len(entries)+i].Value = pattern
		}
	}
	return dst
}

// Unit is the unit of time of a limit.
type Unit uint8

// The units (contract L-14).
const (
	NoUnit Unit = iota
	Second
	Minute
	Hour
	Day
	Week
	Month // 30 days
	Year  // 365 days
)

const day = 24 * time.Hour

var units = [...]struct {
	name   string
	window time.Duration
}{
	NoUnit: {"unknown", 0},
	Second: {"second", time.Second},
	Minute: {"minute", time.Minute},
	Hour:   {"hour", time.Hour},
	Day:    {"day", day},
	Week:   {"week", 7 * day},
	Month:  {"month", 30 * day},
	Year:   {"year", 365 * day},
}

// ParseUnit returns the unit of a name in any case, or false when there is no unit of that name.
func ParseUnit(name string) (Unit, bool) {
	for u := Second; int(u) < len(units); u++ {
		if strings.EqualFold(units[u].name, name) {
			return u, true
		}
	}
	return NoUnit, false
}

// UnitNames returns the names of all units, the shortest unit first.
func UnitNames() []string {
	names := make([]string, 0, len(units)-1)
	for _, u := range units[Second:] {
		names = append(names, u.name)
	}
	return names
}

// String returns the unit's name in lower case.
func (u Unit) String() string {
	if int(u) < len(units) {
		return units[u].name
	}
	return units[NoUnit].name
}

// Window returns the length of the unit; zero for NoUnit.
func (u Unit) Window() time.Duration {
	if int(u) < len(units) {
		return units[u].window
	}
	return 0
}
