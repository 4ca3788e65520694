package decide

import (
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// FailureMode says what is answered when the counter store fails (KVSTORE_FAILURE_MODE,
// contract L-29).
type FailureMode uint8

// The failure modes.
const (
	FailError  FailureMode = iota // the call fails
	FailOpen                      // every descriptor is within its limit
	FailClosed                    // every descriptor that has a limit is over it
	FailLocal                     // another store counts, in the process
)

// ParseFailureMode returns the mode of a name: error, open, closed or local.
func ParseFailureMode(name string) (FailureMode, error) {
	for i, known := range [...]string{"error", "open", "closed", "local"} {
		if name == known {
			return FailureMode(i), nil
		}
	}
	return FailError, errors.New("must be error, open, closed or local")
}

// Config is how a Decider decides.
type Config struct {
	// Prefix begins every key (CACHE_KEY_PREFIX); ratelimit.ValidPrefix.
	Prefix string
	// NearLimitRatio is the part of a limit above which hits are near it, from
	// 0 to 1 (NEAR_LIMIT_RATIO).
	NearLimitRatio float64
	// Shadow answers every request as OK (SHADOW_MODE, contract L-9).
	Shadow bool
	// StopWhenOver adds no hits within their limit when others of the request are over theirs
	// (STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT, contract L-10).
	StopWhenOver bool
	// Quota makes overrides, and descriptors without a rule, descriptors of quota mode
	// (QUOTA_MODE); rules say it for themselves.
	Quota bool
	// JitterMax is the most that a counter outlives its window, in whole
	// seconds, so that not all counters end at once
	// (EXPIRATION_JITTER_MAX_SECONDS).
	JitterMax   time.Duration
	FailureMode FailureMode
	// MaxSeries is the most series of statistics by value; the rest is counted on the rule
	// (STATS_MAX_SERIES, contract L-48).
	MaxSeries int
}

func (c Config) validate(p Ports) error {
	switch {
	case p.Rules == nil, p.Counters == nil, p.Clock == nil:
		return errors.New("rules, counters and clock must be given")
	case c.FailureMode == FailLocal && p.Local == nil:
		return errors.New("to count locally needs a local store")
	case !ratelimit.ValidPrefix(c.Prefix):
		return errors.New("the prefix of keys must be at most 100 characters of printable ASCII without spaces")
	case !(c.NearLimitRatio >= 0 && c.NearLimitRatio <= 1):
		return errors.New("the near limit ratio must be from 0 to 1")
	case c.JitterMax < 0, c.MaxSeries < 0:
		return errors.New("jitter and number of series must not be negative")
	}
	return nil
}
