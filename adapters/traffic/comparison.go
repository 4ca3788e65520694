package traffic

import (
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
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
	return Comparison{
		Calls: r.Calls, Old: RefusedCalls{r.OldRefused}, New: RefusedCalls{r.NewRefused},
		NewlyRefused: r.NewlyRefused, NewlyAdmitted: r.NewlyAdmitted,
		Rules: each.Map(r.Rules, func(rule simulate.RuleChange) RuleRefused {
			return RuleRefused{string(rule.Domain), rule.Path, rule.Calls, rule.OldRefused, rule.NewRefused}
		}),
		Unused: each.Map(r.Unused, func(rule *ratelimit.Rule) UnusedRule {
			return UnusedRule{string(rule.Domain), rule.Written}
		}),
		Keys: each.Map(r.Keys, func(k simulate.KeyChange) KeyRefused {
			return KeyRefused{string(k.Domain), k.Descriptor, k.OldRefused, k.NewRefused}
		}),
	}
}
