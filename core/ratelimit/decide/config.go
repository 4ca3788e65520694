package decide

import (
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Config are the settings of a Decider.
type Config struct {
	// Prefix is the beginning of every key (CACHE_KEY_PREFIX). ratelimit.ValidPrefix must hold.
	Prefix string
	// NearLimitRatio is the part of a limit above which hits are near it, from
	// 0 to 1 (NEAR_LIMIT_RATIO).
	NearLimitRatio float64
	// Shadow answers every request as OK (SHADOW_MODE, contract L-9).
	Shadow bool
	// StopWhenOver adds no hits within their limit when others of the request are over theirs
	// (STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT, contract L-10).
	StopWhenOver bool
	// Quota puts overrides, and descriptors without a rule, in quota mode (QUOTA_MODE); rules have
	// their own setting.
	Quota bool
	// JitterMax is the longest time that a counter outlives its window, in whole seconds, so that
	// not all counters end at once (EXPIRATION_JITTER_MAX_SECONDS).
	JitterMax   time.Duration
	FailureMode FailureMode
	// Leases is what a rule means that does not say lease (COUNTER_LEASES).
	Leases bool
	// MaxSeries is the greatest number of series by value; other hits are counted on the rule
	// (STATS_MAX_SERIES, contract L-48).
	MaxSeries int
	// MaxDescriptors is the greatest number of descriptors of a request; 0 means no limit
	// (MAX_DESCRIPTORS, contract L-26).
	MaxDescriptors int
}

// validate returns an error for the first setting or port that is wrong.
func (c Config) validate(p Ports) error {
	switch {
	case p.Rules == nil, p.Counters == nil, p.Clock == nil:
		return errors.New("rules, counters and clock must be given")
	case c.FailureMode == FailLocal && p.Local == nil:
		return errors.New("failure mode local needs a local store")
	case !ratelimit.ValidPrefix(c.Prefix):
		return errors.New("the prefix of keys must be at most 100 characters of printable ASCII without spaces")
	case !(c.NearLimitRatio >= 0 && c.NearLimitRatio <= 1):
		return errors.New("the near limit ratio must be from 0 to 1")
	case c.JitterMax < 0, c.MaxSeries < 0, c.MaxDescriptors < 0:
		return errors.New("jitter and numbers of series and descriptors must not be negative")
	}
	return nil
}
