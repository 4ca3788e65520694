package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memcached"
	"github.com/tollgate-dev/tollgate/adapters/statsd"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/adapters/xds"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// peerRange changes a value that the Envoy rate limit service accepts to a value in our range. fit
// returns a value unchanged if it is in the range, or malformed.
type peerRange struct {
	name   string // our name of the variable
	shared bool   // the Envoy rate limit service has the same name
	fit    func(value string) string
}

// fitPeerValues replaces values that the Envoy rate limit service accepts and we do not, and warns
// of each. It keeps values of variables that only we have, and values that are malformed for both;
// parse and Validate report them.
func (e *environment) fitPeerValues() {
	if e.alone {
		for _, r := range aloneRanges() {
			e.fitPeerValue(r)
		}
	}
	for _, r := range peerRanges() {
		e.fitPeerValue(r)
	}
	e.fitPipelineWindow("KVSTORE_PIPELINE_WINDOW", "KVSTORE_TIMEOUT")
	e.fitPipelineWindow("KVSTORE_PERSECOND_PIPELINE_WINDOW", "KVSTORE_PERSECOND_TIMEOUT", "KVSTORE_TIMEOUT")
}

// fitPeerValue replaces one value and warns of it.
func (e *environment) fitPeerValue(r peerRange) {
	value, set := e.values[r.name]
	given, adopted := e.adopted[r.name]
	if !set || !adopted && !r.shared {
		return
	}
	if !adopted {
		given = r.name
	}
	used := r.fit(value)
	if used == value {
		return
	}
	e.values[r.name] = used
	e.warnings = append(e.warnings, fmt.Sprintf("%s: %q is out of range, %q is used instead", given, value, used))
}

// fitPipelineWindow makes the window shorter than the timeout of the calls that wait for it. The
// timeout is the value of the first variable that is set.
func (e *environment) fitPipelineWindow(window string, timeouts ...string) {
	timeout := valkey.DefaultTimeout
	for _, name := range timeouts {
		if d, err := time.ParseDuration(e.values[name]); err == nil {
			timeout = d
			break
		}
	}
	e.fitPeerValue(peerRange{name: window, fit: func(value string) string {
		if d, err := time.ParseDuration(value); err == nil && d >= timeout {
			return (timeout / 2).String()
		}
		return value
	}})
}

// peerRanges returns the ranges that differ from those of the Envoy rate limit service.
func peerRanges() []peerRange {
	return []peerRange{
		{"KVSTORE_POOL_SIZE", false, wholeNumber(1, valkey.MaxPoolSize, 1)},
		{"KVSTORE_PERSECOND_POOL_SIZE", false, wholeNumber(1, valkey.MaxPoolSize, 1)},
		{"KVSTORE_PIPELINE_LIMIT", false, wholeNumber(0, 1<<31-1, 0)},
		{"KVSTORE_PERSECOND_PIPELINE_LIMIT", false, wholeNumber(0, 1<<31-1, 0)},
		// 0 means no timeout in that service.
		{"KVSTORE_TIMEOUT", false, interval(valkey.MinTimeout, valkey.MaxTimeout, valkey.MaxTimeout)},
		{"KVSTORE_PERSECOND_TIMEOUT", false, interval(valkey.MinTimeout, valkey.MaxTimeout, valkey.MaxTimeout)},
		{"KVSTORE_SOCKET_TYPE", false, socketType},
		{"KVSTORE_PERSECOND_SOCKET_TYPE", false, socketType},
		// 0 means the default of its library there, which is 2.
		{"MEMSTORE_MAX_IDLE_CONNS", false, wholeNumber(1, memcached.MaxConnections, 2)},
		{"CACHE_KEY_PREFIX", true, keyPrefix},
		{"EXPIRATION_JITTER_MAX_SECONDS", true, wholeNumber(0, 1<<31-1, 0)},
		{"STATS_FLUSH_INTERVAL", true, interval(statsd.MinFlushInterval, statsd.MaxFlushInterval, 0)},
		{"CONFIG_GRPC_XDS_NODE_METADATA", true, nodeMetadata},
		{"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", true, interval(xds.MinWait, xds.MaxWait, xds.MinWait)},
		// 0 means the default of its library there.
		{"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", true, interval(xds.MinWait, xds.MaxWait, 100*time.Millisecond)},
		{"XDS_CLIENT_BACKOFF_MAX_INTERVAL", true, interval(xds.MinWait, xds.MaxWait, 10*time.Second)},
		{"XDS_CLIENT_BACKOFF_RANDOM_FACTOR", true, factor},
		{"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", true, atMost(xds.MaxMessageSize)},
	}
}

// aloneRanges returns the ranges of values that look like a mistake, so that only a service in
// place of the Envoy rate limit service accepts them.
func aloneRanges() []peerRange {
	return []peerRange{
		{"NEAR_LIMIT_RATIO", true, fraction},
		{"TRACING_SAMPLING_RATE", true, fraction},
		{"LOCAL_CACHE_SIZE_IN_BYTES", true, wholeNumber(0, math.MaxInt64, 0)},
		{"KVSTORE_TIMEOUT", false, notNegative(valkey.MinTimeout)},
		{"KVSTORE_PERSECOND_TIMEOUT", false, notNegative(valkey.MinTimeout)},
		{"KVSTORE_PIPELINE_WINDOW", false, notNegative(0)},
		{"KVSTORE_PERSECOND_PIPELINE_WINDOW", false, notNegative(0)},
		{"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", true, notNegative(xds.MinWait)},
		// As 0, a negative interval means the default of its library there.
		{"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", true, notNegative(100 * time.Millisecond)},
		{"XDS_CLIENT_BACKOFF_MAX_INTERVAL", true, notNegative(10 * time.Second)},
		{"XDS_CLIENT_BACKOFF_RANDOM_FACTOR", true, fraction},
		{"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", true, wholeNumber(0, xds.MaxMessageSize, 0)},
		{"EXTRA_TAGS", true, lastTags},
	}
}

// wholeNumber returns a function that limits a number to least and most. A number below least
// becomes low.
func wholeNumber(least, most, low int64) func(string) string {
	return func(value string) string {
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
			return value
		case n < least:
			return strconv.FormatInt(low, 10)
		case n > most:
			return strconv.FormatInt(most, 10)
		}
		return value
	}
}

// atMost returns a function that limits a number to most. It keeps negative numbers, which Validate
// reports.
func atMost(most int64) func(string) string {
	fit := wholeNumber(0, most, 0)
	return func(value string) string {
		if strings.HasPrefix(value, "-") {
			return value
		}
		return fit(value)
	}
}

// interval returns a function that limits a duration to least and most. A duration of 0 becomes
// zero. It keeps 0 if zero is 0, and negative durations, which Validate reports.
func interval(least, most, zero time.Duration) func(string) string {
	return func(value string) string {
		d, err := time.ParseDuration(value)
		switch {
		case err != nil || d < 0 || d == 0 && zero == 0:
			return value
		case d == 0:
			return zero.String()
		case d < least:
			return least.String()
		case d > most:
			return most.String()
		}
		return value
	}
}

// notNegative returns a function that replaces a negative duration by least.
func notNegative(least time.Duration) func(string) string {
	return func(value string) string {
		if d, err := time.ParseDuration(value); err == nil && d < 0 {
			return least.String()
		}
		return value
	}
}

// fraction limits a number to 0 and 1.
func fraction(value string) string {
	f, err := strconv.ParseFloat(value, 64)
	switch {
	case err == nil && f < 0:
		return "0"
	case err == nil && f > 1:
		return "1"
	}
	return value
}

// lastTags keeps the last one of several tags of a name.
func lastTags(value string) string {
	var kept []string
	for pair := range strings.SplitSeq(value, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(pair), ":")
		kept = append(slices.DeleteFunc(kept, func(other string) bool {
			earlier, _, _ := strings.Cut(strings.TrimSpace(other), ":")
			return earlier == name
		}), pair)
	}
	return strings.Join(kept, ",")
}

// factor limits XDS_CLIENT_BACKOFF_RANDOM_FACTOR to 1. Here it is the fraction of a wait that is
// random; in the Envoy rate limit service each wait is longer than the previous one by this factor.
func factor(value string) string {
	if f, err := strconv.ParseFloat(value, 64); err == nil && f > 1 {
		return "1"
	}
	return value
}

// socketType returns tcp for tcp4 and tcp6.
func socketType(value string) string {
	if value == "tcp4" || value == "tcp6" {
		return "tcp"
	}
	return value
}

// keyPrefix returns a prefix that all stores accept. Different prefixes stay different, and all
// instances compute the same result.
func keyPrefix(value string) string {
	if ratelimit.ValidPrefix(value) {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	clear := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, value)
	return clear[:min(len(clear), ratelimit.MaxPrefix/2)] + "_" + hex.EncodeToString(sum[:8]) + "_"
}

// nodeMetadata removes entries that are not key=value.
func nodeMetadata(value string) string {
	if strings.HasPrefix(strings.TrimSpace(value), "{") {
		return value
	}
	var kept []string
	for entry := range strings.SplitSeq(value, ",") {
		if i := strings.IndexAny(entry, "=:"); i >= 0 && strings.TrimSpace(entry[:i]) != "" {
			kept = append(kept, entry)
		}
	}
	return strings.Join(kept, ",")
}
