package statistics

import "github.com/tollgate-dev/tollgate/core/ratelimit"

// method is the one method that calls are counted by.
const method = "ShouldRateLimit"

// The names of the service's statistics begin so.
const (
	rulePrefix    = "ratelimit.service.rate_limit."
	servicePrefix = "ratelimit.service."
	callPrefix    = servicePrefix + "call.should_rate_limit."
	serverPrefix  = "ratelimit_server." + method + "."
)

// ResponseTime is the name of the statistic of how long calls took.
const ResponseTime = serverPrefix + "response_time"

// appendName appends the name of what is counted on a path, without the
// statistic.
func appendName(dst []byte, d ratelimit.Domain, path string) []byte {
	dst = append(dst, rulePrefix...)
	dst = appendClean(dst, string(d))
	dst = append(dst, '.')
	return appendClean(dst, path)
}

// appendClean replaces what separates names from values and one line from the
// next wherever statistics are written.
func appendClean(dst []byte, s string) []byte {
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == ':' || r == '|' {
			r = '_'
		}
		dst = append(dst, string(r)...)
	}
	return dst
}
