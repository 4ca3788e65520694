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
	from := len(dst)
	dst = appendPrintable(dst, string(d))
	dst = append(dst, '.')
	dst = appendPrintable(dst, path)
	joinAddresses(dst[from:])
	return dst
}

// clean returns a part of a name as names have it.
func clean(part string) string {
	name := appendPrintable(make([]byte, 0, len(part)), part)
	joinAddresses(name)
	return string(name)
}

// appendPrintable replaces what separates names from values and one line from the next wherever
// statistics are written. What it appends is valid UTF-8.
func appendPrintable(dst []byte, s string) []byte {
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == ':' || r == '|' {
			r = '_'
		}
		dst = append(dst, string(r)...)
	}
	return dst
}

// joinAddresses replaces the dots of IPv4 addresses, 10.0.0.1, by underscores, 10_0_0_1, as the Envoy
// service does: a dot begins a new level of a name.
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

// addressEnd returns the length of the address that the name begins with: four numbers of one to three
// digits with dots between them. It returns 0 for none.
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
