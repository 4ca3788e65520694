// Package risk scores a sign-in: signals become points, points a score from 0 to 100
// (contract A-28). It is pure, and knows neither where signals come from nor what a score leads to.
package risk

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/auth/trust"
)

// MaxScore is the greatest score.
const MaxScore = 100

// Signals are what is known at a sign-in, before its device is recorded.
type Signals struct {
	At             time.Time
	Device         trust.Device
	Location       Location
	History        History
	Reputation     Reputation
	Sessions       Velocity
	FailedAttempts int // of the user, within the last 15 minutes
}

// Velocity counts the sessions that the user made lately, without the one that is being made.
type Velocity struct {
	LastMinute      int
	LastFiveMinutes int
}

// Factors are the points by factor, as the audit log shows them.
type Factors struct {
	DeviceFamiliarity int
	GeographicAnomaly int
	IPReputation      int
	LoginVelocity     int
	FailedAttempts    int
}

// Sum returns the points together, not clamped.
func (f Factors) Sum() int {
	return f.DeviceFamiliarity + f.GeographicAnomaly + f.IPReputation + f.LoginVelocity + f.FailedAttempts
}

// Reasons say in words why each factor has its points, for the audit log.
type Reasons struct {
	DeviceFamiliarity string
	GeographicAnomaly string
	IPReputation      string
	LoginVelocity     string
	FailedAttempts    string
}

// Silent names a source that is configured and had no answer.
type Silent string

// The sources that may be silent.
const (
	SilentGeography  Silent = "geographicAnomaly"
	SilentReputation Silent = "ipReputation"
)

// Assessment is the result of scoring.
type Assessment struct {
	Factors Factors
	Reasons Reasons
	Score   int // 0 to 100
	Silent  []Silent
}

// finding is what one factor comes to, and why.
type finding struct {
	points int
	reason string
}

// Assess scores the signals.
func Assess(c Config, s Signals) Assessment {
	device, place := deviceFamiliarity(c, s.Device), geographicAnomaly(c, &s)
	address, pace, failures := ipReputation(c, s.Reputation), loginVelocity(c, s.Sessions), failedAttempts(c, s.FailedAttempts)
	a := Assessment{
		Factors: Factors{
			DeviceFamiliarity: device.points, GeographicAnomaly: place.points, IPReputation: address.points,
			LoginVelocity: pace.points, FailedAttempts: failures.points,
		},
		Reasons: Reasons{
			DeviceFamiliarity: device.reason, GeographicAnomaly: place.reason, IPReputation: address.reason,
			LoginVelocity: pace.reason, FailedAttempts: failures.reason,
		},
	}
	a.Score = min(max(a.Factors.Sum(), 0), MaxScore)
	if s.Location.countrySilent() {
		a.Silent = append(a.Silent, SilentGeography)
	}
	if s.Reputation.State == Unanswered {
		a.Silent = append(a.Silent, SilentReputation)
	}
	return a
}
