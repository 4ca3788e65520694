// Package risk scores a sign-in: signals become points, points a score from 0 to 100 (decisions 2.3). It is pure; where
// signals come from and what a score leads to is not its business.
package risk

import (
	"slices"
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
	Score   int // 0 to 100
	Silent  []Silent
}

// Assess scores the signals.
func Assess(c Config, s Signals) Assessment {
	a := Assessment{Factors: Factors{
		DeviceFamiliarity: deviceFamiliarity(c, s.Device),
		GeographicAnomaly: geographicAnomaly(c, s),
		IPReputation:      ipReputation(c, s.Reputation),
		LoginVelocity:     loginVelocity(c, s.Sessions),
		FailedAttempts:    failedAttempts(c, s.FailedAttempts),
	}}
	a.Score = min(max(a.Factors.Sum(), 0), MaxScore)
	if s.Location.State == Unanswered {
		a.Silent = append(a.Silent, SilentGeography)
	}
	if s.Reputation.State == Unanswered {
		a.Silent = append(a.Silent, SilentReputation)
	}
	return a
}

func deviceFamiliarity(c Config, d trust.Device) int {
	switch {
	case d.Assured():
		return 0
	case d.Confirmed:
		return c.DeviceConfirmed
	}
	return c.DeviceUnknown
}

// geographicAnomaly counts the worst of what applies. Without a history nothing is unusual but a high-risk country.
func geographicAnomaly(c Config, s Signals) int {
	switch s.Location.State {
	case NotConfigured:
		return 0
	case Unanswered:
		return c.OtherCountry / 2
	}
	points := 0
	if slices.Contains(c.HighRiskCountries, s.Location.Country) {
		points = c.HighRiskCountry
	}
	if len(s.History.Countries) > 0 && !slices.Contains(s.History.Countries, s.Location.Country) {
		points = max(points, c.OtherCountry)
	}
	if impossibleTravel(c, s) {
		points = max(points, c.ImpossibleTravel)
	}
	return points
}

func impossibleTravel(c Config, s Signals) bool {
	last := s.History.Last
	if last == nil || s.Location.Coordinates == nil {
		return false
	}
	km := last.Coordinates.DistanceKM(*s.Location.Coordinates)
	hours := max(s.At.Sub(last.At).Hours(), 0)
	return km > c.TravelMinKM && km > c.TravelMaxKMH*hours
}

func ipReputation(c Config, r Reputation) int {
	switch {
	case r.State == NotConfigured:
		return 0
	case r.State == Unanswered:
		return c.AddressHidden / 2
	case r.Class == Listed:
		return c.AddressListed
	case r.Class == Clean:
		return 0
	}
	return c.AddressHidden
}

func loginVelocity(c Config, v Velocity) int {
	switch {
	case v.LastMinute >= c.VelocitySessions:
		return c.VelocityMinute
	case v.LastFiveMinutes >= c.VelocitySessions:
		return c.VelocityFiveMinutes
	}
	return 0
}

func failedAttempts(c Config, n int) int {
	switch {
	case n >= c.ManyFailures:
		return c.FailedMany
	case n >= c.SomeFailures:
		return c.FailedSome
	case n >= 1:
		return c.FailedFew
	}
	return 0
}
