package decide

import (
	"errors"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Config are the settings of a Decider.
type Config struct {
	// Prefix is the beginning of every key. ratelimit.ValidPrefix must hold.
	Prefix string
	// NearLimitRatio is the part of a limit above which hits are near it, from 0 to 1.
	NearLimitRatio float64
	// Shadow answers every request as OK (contract L-9).
	Shadow bool
	// StopWhenOver adds no hits within their limit when others of the request are over theirs
	// (contract L-10).
	StopWhenOver bool
	// Quota puts overrides, and descriptors without a rule, in quota mode; rules have
	// their own setting.
	Quota bool
	// JitterMax is the longest time that a counter outlives its window, in whole seconds, so that
	// not all counters end at once.
	JitterMax   time.Duration
	FailureMode FailureMode
	// Leases is what a rule means that does not say lease.
	Leases bool
	// MaxSeries is the greatest number of series by value; other hits are counted on the rule
	// (contract L-48).
	MaxSeries int
	// MaxDescriptors is the greatest number of descriptors of a request; 0 means no limit
	// (contract L-26).
	MaxDescriptors int
	// MaxDescriptorsName is the name of MaxDescriptors in errors.
	MaxDescriptorsName string
}

// MostDescriptors is the greatest MaxDescriptors.
const MostDescriptors = 1_000_000

// Validate returns an error that begins with the name of the first field that is out of range.
func (c Config) Validate() error {
	switch {
	case !ratelimit.ValidPrefix(c.Prefix):
		return fmt.Errorf("Prefix: more than %d characters, or not printable ASCII without spaces", ratelimit.MaxPrefix)
	case !(c.NearLimitRatio >= 0 && c.NearLimitRatio <= 1):
		return fmt.Errorf("NearLimitRatio: %v is not in the range 0 to 1", c.NearLimitRatio)
	case c.JitterMax < 0:
		return fmt.Errorf("JitterMax: %d is negative", c.JitterMax/time.Second)
	case c.MaxSeries < 0:
		return fmt.Errorf("MaxSeries: %d is negative", c.MaxSeries)
	case c.MaxDescriptors < 0 || c.MaxDescriptors > MostDescriptors:
		return fmt.Errorf("MaxDescriptors: %d is not in the range 0 to %d", c.MaxDescriptors, MostDescriptors)
	}
	return nil
}

// validateWith returns an error for the first setting or port that is wrong.
func (c Config) validateWith(p Ports) error {
	switch {
	case p.Rules == nil, p.Counters == nil, p.Clock == nil:
		return errors.New("rules, counters and clock must be given")
	case c.FailureMode == FailLocal && p.Local == nil:
		return errors.New("failure mode local needs a local store")
	}
	return c.Validate()
}
