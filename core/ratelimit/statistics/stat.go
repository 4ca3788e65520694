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

// callMethod is the one method whose calls are counted.
const callMethod = "ShouldRateLimit"

// These are the prefixes of the names of the statistics.
const (
	rulePrefix    = "ratelimit.service.rate_limit."
	servicePrefix = "ratelimit.service."
	callPrefix    = servicePrefix + "call.should_rate_limit."
	serverPrefix  = "ratelimit_server." + callMethod + "."
)

// ResponseTime is the name of the statistic of response times.
const ResponseTime = serverPrefix + "response_time"

// appendName appends the name of the statistics of a path, without the name of the statistic.
func appendName(dst []byte, d ratelimit.Domain, path string) []byte {
	dst = append(dst, rulePrefix...)
	from := len(dst)
	dst = appendPrintable(dst, string(d))
	dst = append(dst, '.')
	dst = appendPrintable(dst, path)
	joinAddresses(dst[from:])
	return dst
}

// cleanName returns a part of a name in the form that names have.
func cleanName(part string) string {
	name := appendPrintable(make([]byte, 0, len(part)), part)
	joinAddresses(name)
	return string(name)
}

// appendPrintable appends s without the characters that separate names from values, or one line
// from the next, in the formats of sinks. The result is valid UTF-8.
func appendPrintable(dst []byte, s string) []byte {
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == ':' || r == '|' {
			r = '_'
		}
		dst = append(dst, string(r)...)
	}
	return dst
}

// joinAddresses replaces the dots of IPv4 addresses, 10.0.0.1, by underscores, 10_0_0_1, as the
// Envoy service does: a dot begins a new level of a name.
func joinAddresses(name []byte) {
	for i := 0; i < len(name); {
		end := addressEnd(name[i:])
		for j := i; j < i+end; j++ {
			if name[j] == '.' {
				name[j] = '_'
			}
		}
		i += max(end, 1)
	}
}

// addressEnd returns the length of the IPv4 address that the name begins with, four numbers of one
// to three digits with dots between them, or 0 when it begins with no address.
func addressEnd(name []byte) int {
	i := 0
	for part := range 4 {
		if part > 0 {
			if i == len(name) || name[i] != '.' {
				return 0
			}
			i++
		}
		digits := 0
		for i < len(name) && digits < 3 && name[i] >= '0' && name[i] <= '9' {
			i++
			digits++
		}
		if digits == 0 {
			return 0
		}
	}
	return i
}
