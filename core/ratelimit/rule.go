package ratelimit

import "sync/atomic"

// Name is the name by which one limit replaces another.
type Name string

// Metadata is what a rule tells callers in the dynamic metadata of answers:
// values of JSON, which are nil, bool, float64, string, []any and
// map[string]any. It does not change once it is made.
type Metadata map[string]any

// Rule is what a descriptor of the configuration says about requests that land
// on it. It does not change once it is compiled; only its Hits are counted on.
//
// What every decision reads stands first: with many rules, fetching it from memory
// is what a rule costs.
type Rule struct {
	Limit     Limit // zero when Unlimited
	Unlimited bool
	Shadow    bool // an over-limit outcome is answered as OK (contract L-8)
	Quota     bool // fails the request only together with all other quota rules

	// Hits are the rule's statistics, kept over reloads as long as the rule's
	// path stays.
	Hits *Hits
	// Shared is nil, or has for each level the pattern whose values share one
	// counter; empty where each value has its own (share_threshold).
	Shared []string
	// Valued is nil, or tells for each level whether statistics name the value
	// that was asked for (detailed_metric, value_to_metric).
	Valued   []bool
	Replaces []Name // neither empty nor its own
	Name     Name   // empty for none

	Domain Domain
	// Path is the rule's name in statistics: key_value of each level, joined by dots
	// (contract L-44).
	Path string
	// Levels is the key_value of each level by itself.
	Levels []string
	// Metadata is what callers hear while the limit is not exceeded, if answers
	// hold metadata at all; nil for none.
	Metadata Metadata
}

// Hits are the statistics of one rule, each a count of hits since the start.
// They are safe for concurrent use.
type Hits struct {
	Total  atomic.Uint64 // all hits
	Over   atomic.Uint64 // hits over the limit
	Near   atomic.Uint64 // hits over the near-limit ratio and within the limit
	Within atomic.Uint64 // hits that were answered as OK
	Shadow atomic.Uint64 // hits over the limit that shadow mode let pass
	// OverLocal are the hits over the limit that the local cache answered.
	OverLocal atomic.Uint64
}
