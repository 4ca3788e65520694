// Package risk scores a sign-in: it turns signals into points, and points into a score from 0 to
// 100 (contract A-28). Its functions are pure. Package assessment gathers the signals, package
// trust turns scores into levels.
package risk

import (
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
)

// MaxScore is the greatest score.
const MaxScore = 100

// Signals are the inputs of the score of a sign-in, before its device is recorded.
type Signals struct {
	At             time.Time
	Device         Device
	Location       Location
	History        History
	Reputation     Reputation
	Sessions       Velocity
	FailedAttempts int // of the user, within the last 15 minutes
}

// Device is the state of the device that a person signs in from.
type Device struct {
	Confirmed bool // a session on it passed step-up or MFA
	Trusted   bool // its owner marked it TRUSTED; counts once it is confirmed
	Proven    bool // the request has its device token, or no token is required
}

// Assured reports whether the device is confirmed, trusted and proven.
func (d Device) Assured() bool { return d.Confirmed && d.Trusted && d.Proven }

// Velocity counts the recent sessions of the user, without the present one.
type Velocity struct {
	LastMinute      int
	LastFiveMinutes int
}

// Factors are the points by factor.
type Factors [factorCount]int

// Sum returns the sum of the points, not clamped.
func (f Factors) Sum() (sum int) {
	for _, points := range f {
		sum += points
	}
	return sum
}

// Reasons say in words why each factor has its points.
type Reasons [factorCount]string

// SilentSource names a source that is configured and returned no data.
type SilentSource string

// The sources that may be silent.
const (
	SilentGeography  SilentSource = geographicName
	SilentReputation SilentSource = reputationName
)

// Assessment is the result of scoring.
type Assessment struct {
	Factors       Factors
	Reasons       Reasons
	Score         int // 0 to 100
	SilentSources []SilentSource
}

// finding is the points of one factor with the reason.
type finding struct {
	points int
	reason string
}

// Assess returns the score of signals with its factors and reasons.
func Assess(c Config, s Signals) Assessment {
	var a Assessment
	for f, factor := range factors {
		found := factor.find(c, &s)
		a.Factors[f], a.Reasons[f] = found.points, found.reason
	}
	a.Score = min(max(a.Factors.Sum(), 0), MaxScore)
	if s.Location.countrySilent() {
		a.SilentSources = append(a.SilentSources, SilentGeography)
	}
	if s.Reputation.State == Unanswered {
		a.SilentSources = append(a.SilentSources, SilentReputation)
	}
	return a
}

// Config holds the weights, in points, and their bounds (contract ).
type Config struct {
	DeviceConfirmed int // a confirmed device that is not both trusted and proven
	DeviceUnknown   int // any other device

	OtherCountry      int // half of it where geography is configured and has no answer
	HighRiskCountry   int
	HighRiskCountries []string // ISO 3166 alpha-2, upper case
	ImpossibleTravel  int
	TravelMaxKMH      float64 // faster than this is impossible ...
	TravelMinKM       float64 // ... over more than this

	AddressHidden int // hosting, proxy or Tor; half of it where reputation is configured and has no answer
	AddressListed int

	VelocitySessions    int // so many sessions ...
	VelocityMinute      int // ... within one minute
	VelocityFiveMinutes int // ... within five

	FailedFew    int // one failure and more
	FailedSome   int // SomeFailures and more
	FailedMany   int // ManyFailures and more
	SomeFailures int
	ManyFailures int
}

// Validate returns an error that begins with the name of the first field that is out of range.
func (c Config) Validate() error {
	for _, check := range []func() error{c.checkPoints, c.checkLimits, c.checkCountries} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkLimits returns an error if a number of sessions or failures, a speed or a distance is out of
// range.
func (c Config) checkLimits() error {
	switch {
	case c.VelocitySessions < 1:
		return fmt.Errorf("VelocitySessions: %d is less than 1", c.VelocitySessions)
	case c.SomeFailures < 1:
		return fmt.Errorf("SomeFailures: %d is less than 1", c.SomeFailures)
	case c.ManyFailures < c.SomeFailures:
		return fmt.Errorf("ManyFailures: %d is less than SomeFailures", c.ManyFailures)
	case !(c.TravelMaxKMH > 0 && c.TravelMaxKMH <= math.MaxFloat64):
		return fmt.Errorf("TravelMaxKMH: %v is not a positive number", c.TravelMaxKMH)
	case !(c.TravelMinKM >= 0 && c.TravelMinKM <= math.MaxFloat64):
		return fmt.Errorf("TravelMinKM: %v is not 0 or a positive number", c.TravelMinKM)
	}
	return nil
}

// checkCountries returns an error if a country is not an ISO 3166 code.
func (c Config) checkCountries() error {
	for _, code := range c.HighRiskCountries {
		if !IsCountry(code) {
			return fmt.Errorf("HighRiskCountries: %q is not an ISO 3166 code of two capital letters", code)
		}
	}
	return nil
}

// The details of the evaluation of a sign-in in the audit log that only a session at FULL_TRUST may
// read. With the history on, the score includes that of the history.
const (
	DetailScore       = "riskScore"
	DetailReasons     = "reasons"     // why each factor has its points, in words
	DetailHistory     = "history"     // the score of the history with its parts
	DetailPointsScore = "pointsScore" // of the history: the score of the points alone
)

// WithoutHabits returns an event as a session below FULL_TRUST may read it (contract A-63): without
// the words of its reasons and without the score of the history. From these an attacker who knows
// only the password could learn, one feature after another, which device, place and language the
// owner uses, and sign in with them.
func WithoutHabits(e audit.Event) audit.Event {
	if e.Category != audit.RiskEvaluation && e.Category != audit.SuspiciousActivity {
		return e
	}
	details := maps.Clone(e.Details)
	if h := details.Inner(DetailHistory); h != nil {
		details[DetailScore] = h[DetailPointsScore]
	}
	if e.Category == audit.SuspiciousActivity {
		delete(details, DetailScore)
	}
	delete(details, DetailReasons)
	delete(details, DetailHistory)
	e.Details = details
	return e
}
