package statistics

import "github.com/tollgate-dev/tollgate/core/ratelimit"

// Stat is one statistic of a rule.
type Stat uint8

// The statistics of a rule.
const (
	TotalHits Stat = iota
	OverLimit
	NearLimit
	WithinLimit
	ShadowMode
	OverLimitLocal
	stats
)

// Stats returns the statistics of a rule.
func Stats() []Stat {
	return []Stat{TotalHits, OverLimit, NearLimit, WithinLimit, ShadowMode, OverLimitLocal}
}

// String returns the last part of the statistic's name.
func (s Stat) String() string {
	return [...]string{
		"total_hits", "over_limit", "near_limit", "within_limit", "shadow_mode", "over_limit_with_local_cache",
	}[s]
}

// Help returns a sentence that says what is counted.
func (s Stat) Help() string {
	return [...]string{
		"All hits.",
		"Hits over the limit.",
		"Hits over the near-limit ratio and within the limit.",
		"Hits answered as OK.",
		"Hits over the limit that shadow mode let pass.",
		"Hits over the limit that the local cache answered.",
	}[s]
}

// Values are the values of all statistics of a rule, by Stat.
type Values [stats]uint64

// readValues returns the current values.
func readValues(h *ratelimit.Hits) Values {
	return Values{
		h.Total(), h.Over.Load(), h.Near.Load(), h.Within.Load(), h.Shadow.Load(), h.OverLocal.Load(),
	}
}

func (v *Values) addValues(more Values) {
	for i := range v {
		v[i] += more[i]
	}
}
