// Package risk scores a sign-in: it turns signals into points, and points into a score from 0 to
// 100 (contract A-28). Its functions are pure. Package assessment gathers the signals, package trust
// turns scores into levels.
package risk

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/auth/trust"
)

// MaxScore is the greatest score.
const MaxScore = trust.MaxScore

// Signals are the inputs of the score of a sign-in, before its device is recorded.
type Signals struct {
	At             time.Time
	Device         trust.Device
	Location       Location
	History        History
	Reputation     Reputation
	Sessions       Velocity
	FailedAttempts int // of the user, within the last 15 minutes
}

// Velocity counts the recent sessions of the user, without the present one.
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

// Sum returns the sum of the points, not clamped.
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

// SilentSource names a source that is configured and returned no data.
type SilentSource string

// The sources that may be silent.
const (
	SilentGeography  SilentSource = "geographicAnomaly"
	SilentReputation SilentSource = "ipReputation"
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
		a.SilentSources = append(a.SilentSources, SilentGeography)
	}
	if s.Reputation.State == Unanswered {
		a.SilentSources = append(a.SilentSources, SilentReputation)
	}
	return a
}
