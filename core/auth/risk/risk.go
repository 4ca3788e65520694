// Package risk scores a sign-in: it turns signals into points, and points into a score from 0 to
// 100 (contract A-28). Its functions are pure. Package assessment gathers the signals, package
// trust turns scores into levels.
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
