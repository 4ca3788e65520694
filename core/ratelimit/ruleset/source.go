// Package ruleset compiles configuration into an immutable tree of rules and
// finds the rule that a descriptor lands on. It reads no files (sources come
// from rulesource) and counts nothing (decide does).
package ruleset

import "github.com/tollgate-dev/tollgate/core/ratelimit"

// Position is where something stands in the configuration. Line and Column
// count from 1; zero when they are not known.
type Position struct {
	File   string
	Line   int
	Column int
}

// Text is a word of the configuration and where it stands.
type Text struct {
	Value string
	At    Position
}

// Source is one file, or one resource of a management server: a domain and its
// descriptors, as written. Compile checks what it means.
type Source struct {
	At          Position
	Domain      Text
	Descriptors []Descriptor
	// Faults are what was wrong with the form of the source already: keys that
	// nobody knows, a number where a list belongs. Compile reports them beside
	// its own.
	Faults []Fault
	// Unread tells that the source could not be read as far as its domain,
	// which is then not missed.
	Unread bool
}

// Descriptor is one descriptor of the configuration, as written.
type Descriptor struct {
	At    Position
	Key   Text
	Value Text // empty for none: the rule is for the key alone
	Limit *Limit
	// Shadow is shadow_mode beside the limit, as the Envoy service has it;
	// nil when it is not there.
	Shadow         *bool
	DetailedMetric bool
	ValueToMetric  bool
	ShareThreshold bool
	QuotaMode      bool
	Metadata       ratelimit.Metadata // nil for none
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
	Shadow    *bool // shadow_mode in the block; nil when it is not there
}

// Requests is requests_per_unit, as written.
type Requests struct {
	Count uint32
	At    Position
}
