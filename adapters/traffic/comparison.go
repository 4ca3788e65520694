package traffic

import (
	"github.com/tollgate-dev/tollgate/core/ratelimit/simulate"
)

// Comparison is the JSON of a simulation (contract L-62).
type Comparison struct {
	Calls         uint64        `json:"calls"`
	Old           RefusedCalls  `json:"old"`
	New           RefusedCalls  `json:"new"`
	NewlyRefused  uint64        `json:"newlyRefused"`
	NewlyAdmitted uint64        `json:"newlyAdmitted"`
	Rules         []RuleRefused `json:"rules"`
	Unused        []UnusedRule  `json:"unused"`
	Keys          []KeyRefused  `json:"keys"`
}

// RefusedCalls are the calls that a set of rules refuses.
type RefusedCalls struct {
	Refused uint64 `json:"refused"`
}

// RuleRefused is how often a rule refuses descriptors.
type RuleRefused struct {
	Domain     string   `json:"domain"`
	Path       []string `json:"path"`
	Calls      uint64   `json:"calls"`
	OldRefused uint64   `json:"oldRefused"`
	NewRefused uint64   `json:"newRefused"`
}

// UnusedRule is a new rule that matched no descriptor.
type UnusedRule struct {
	Domain string   `json:"domain"`
	Path   []string `json:"path"`
}

// KeyRefused is how often a descriptor is refused.
type KeyRefused struct {
	Domain     string `json:"domain"`
	Descriptor string `json:"descriptor"`
	OldRefused uint64 `json:"oldRefused"`
	NewRefused uint64 `json:"newRefused"`
}

// NewComparison returns the JSON of a report.
func NewComparison(r simulate.Report) Comparison {
	c := Comparison{
		Calls: r.Calls, Old: RefusedCalls{r.OldRefused}, New: RefusedCalls{r.NewRefused},
		NewlyRefused: r.NewlyRefused, NewlyAdmitted: r.NewlyAdmitted,
		Rules: make([]RuleRefused, len(r.Rules)), Unused: make([]UnusedRule, len(r.Unused)),
		Keys: make([]KeyRefused, len(r.Keys)),
	}
	for i, rule := range r.Rules {
		c.Rules[i] = RuleRefused{string(rule.Domain), rule.Path, rule.Calls, rule.OldRefused, rule.NewRefused}
	}
	for i, rule := range r.Unused {
		c.Unused[i] = UnusedRule{string(rule.Domain), rule.Written}
	}
	for i, k := range r.Keys {
		c.Keys[i] = KeyRefused{string(k.Domain), k.Descriptor, k.OldRefused, k.NewRefused}
	}
	return c
}
