// Package ruleset compiles configuration into an immutable tree of rules and finds the rule that a
// descriptor matches. It reads no files (adapters of rulesource do) and counts nothing (decide
// does).
package ruleset

import "github.com/tollgate-dev/tollgate/core/ratelimit"

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
