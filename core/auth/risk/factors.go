package risk

import (
	"fmt"
	"slices"
	"strings"
)

// Factor is a part of the score.
type Factor uint8

// The factors, in the order of the reasons in which they are shown.
const (
	DeviceFamiliarity Factor = iota
	GeographicAnomaly
	IPReputation
	LoginVelocity
	FailedAttempts
	factorCount
)

// The names of factors that are also sources.
const (
	geographicName = "geographicAnomaly"
	reputationName = "ipReputation"
)

// factors are the names of the factors, as the audit log and the API show them, with their rules.
var factors = [factorCount]struct {
	name string
	find func(Config, *Signals) finding
}{
	DeviceFamiliarity: {"deviceFamiliarity", deviceFamiliarity},
	GeographicAnomaly: {geographicName, geographicAnomaly},
	IPReputation:      {reputationName, ipReputation},
	LoginVelocity:     {"loginVelocity", loginVelocity},
	FailedAttempts:    {"failedAttempts", failedAttempts},
}

// String returns the name of the factor.
func (f Factor) String() string { return factors[f].name }

func deviceFamiliarity(c Config, s *Signals) finding {
	switch d := s.Device; {
	case d.Assured():
		return finding{0, "the device is trusted and shows its token"}
	case !d.Confirmed:
		return finding{c.DeviceUnknown, "no step-up or MFA was passed on the device"}
	case d.Trusted:
		return finding{c.DeviceConfirmed, "the device is trusted, but does not show its token"}
	}
	return finding{c.DeviceConfirmed, "the device is confirmed, but not marked as trusted"}
}

// geographicAnomaly returns the worse of the findings for the country and the travel.
func geographicAnomaly(c Config, s *Signals) finding {
	switch s.Location.State {
	case NotConfigured:
		return finding{0, "locations are not configured"}
	case Unanswered:
		return finding{c.OtherCountry / 2, "the location of the address is not known"}
	}
	worst := countryAnomaly(c, s)
	if travel := impossibleTravel(c, s); travel.points > worst.points {
		return travel
	}
	return worst
}

// countryAnomaly returns the finding for the country. Without a history only a high-risk country
// has points.
func countryAnomaly(c Config, s *Signals) finding {
	country, usual := s.Location.Country, s.History.Countries
	if country == "" {
		return finding{c.OtherCountry / 2, "the country of the address is not known"}
	}
	expected := finding{0, country + " is a usual country"}
	switch {
	case len(usual) == 0:
		expected = finding{0, "no country is usual yet, this one is " + country}
	case !slices.Contains(usual, country):
		expected = finding{c.OtherCountry, country + " is not a usual country, which are " + strings.Join(usual, ", ")}
	}
	if slices.Contains(c.HighRiskCountries, country) && c.HighRiskCountry >= expected.points {
		return finding{c.HighRiskCountry, country + " is a high-risk country"}
	}
	return expected
}

// impossibleTravel returns a finding without points if the travel is possible or a location is not
// known.
func impossibleTravel(c Config, s *Signals) finding {
	last := s.History.Last
	if last == nil || s.Location.Coordinates == nil {
		return finding{}
	}
	km := last.Coordinates.DistanceKM(*s.Location.Coordinates)
	passed := max(s.At.Sub(last.At), 0)
	if far := km > c.TravelMinKM && km > c.TravelMaxKMH*passed.Hours(); !far {
		return finding{}
	}
	return finding{
		c.ImpossibleTravel,
		fmt.Sprintf("%.0f km from the last confirmed sign-in, %.1f hours before", km, passed.Hours()),
	}
}

var classNames = [...]string{Hosting: "a hosting company", Proxy: "a proxy", Tor: "a Tor exit"}

func ipReputation(c Config, s *Signals) finding {
	switch r := s.Reputation; {
	case r.State == NotConfigured:
		return finding{0, "reputation lists are not configured"}
	case r.State == Unanswered:
		return finding{c.AddressHidden / 2, "the reputation of the address is not known"}
	case r.Class == Clean:
		return finding{0, "the address is in no list"}
	case r.Class < Listed:
		return finding{c.AddressHidden, "the address is that of " + classNames[r.Class]}
	}
	return finding{c.AddressListed, "the address is listed as bad"}
}

func loginVelocity(c Config, s *Signals) finding {
	switch v := s.Sessions; {
	case v.LastMinute >= c.VelocitySessions:
		return finding{c.VelocityMinute, fmt.Sprintf("other sessions within one minute: %d", v.LastMinute)}
	case v.LastFiveMinutes >= c.VelocitySessions:
		return finding{c.VelocityFiveMinutes, fmt.Sprintf("other sessions within five minutes: %d", v.LastFiveMinutes)}
	}
	return finding{0, "sessions are not made fast"}
}

func failedAttempts(c Config, s *Signals) finding {
	n := s.FailedAttempts
	why := fmt.Sprintf("failed sign-ins within 15 minutes: %d", n)
	switch {
	case n >= c.ManyFailures:
		return finding{c.FailedMany, why}
	case n >= c.SomeFailures:
		return finding{c.FailedSome, why}
	case n >= 1:
		return finding{c.FailedFew, why}
	}
	return finding{0, "no failed sign-ins within 15 minutes"}
}
