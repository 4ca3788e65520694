package risk

import (
	"fmt"
	"math"
)

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

// DefaultConfig returns the default weights and bounds (contract ).
func DefaultConfig() Config {
	return Config{
		DeviceConfirmed: 15, DeviceUnknown: 30,
		OtherCountry: 20, HighRiskCountry: 30, ImpossibleTravel: 40, TravelMaxKMH: 900, TravelMinKM: 100,
		AddressHidden: 10, AddressListed: 40,
		VelocitySessions: 2, VelocityMinute: 30, VelocityFiveMinutes: 15,
		FailedFew: 10, FailedSome: 25, FailedMany: 40, SomeFailures: 3, ManyFailures: 6,
	}
}

// Validate returns an error that begins with the first setting that is out of range, by the name of
// its environment variable.
func (c Config) Validate() error {
	for _, check := range []func() error{c.checkPoints, c.checkOrder, c.checkLimits, c.checkCountries} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkPoints returns an error if a weight is not in the range 0 to MaxScore.
func (c Config) checkPoints() error {
	for _, w := range []struct {
		name   string
		points int
	}{
		{"RISK_DEVICE_CONFIRMED", c.DeviceConfirmed}, {"RISK_DEVICE_UNKNOWN", c.DeviceUnknown},
		{"RISK_OTHER_COUNTRY", c.OtherCountry}, {"RISK_HIGH_RISK_COUNTRY", c.HighRiskCountry},
		{"RISK_IMPOSSIBLE_TRAVEL", c.ImpossibleTravel}, {"RISK_ADDRESS_HIDDEN", c.AddressHidden},
		{"RISK_ADDRESS_LISTED", c.AddressListed}, {"RISK_VELOCITY_MINUTE", c.VelocityMinute},
		{"RISK_VELOCITY_FIVE_MINUTES", c.VelocityFiveMinutes}, {"RISK_FAILED_FEW", c.FailedFew},
		{"RISK_FAILED_SOME", c.FailedSome}, {"RISK_FAILED_MANY", c.FailedMany},
	} {
		if w.points < 0 || w.points > MaxScore {
			return fmt.Errorf("%s: %d is not in the range 0 to %d", w.name, w.points, MaxScore)
		}
	}
	return nil
}

// checkOrder returns an error if a worse signal has fewer points than a better one.
func (c Config) checkOrder() error {
	for _, pair := range []struct {
		worse       string
		worsePoints int
		better      string
		points      int
	}{
		{"RISK_DEVICE_UNKNOWN", c.DeviceUnknown, "RISK_DEVICE_CONFIRMED", c.DeviceConfirmed},
		{"RISK_ADDRESS_LISTED", c.AddressListed, "RISK_ADDRESS_HIDDEN", c.AddressHidden},
		{"RISK_VELOCITY_MINUTE", c.VelocityMinute, "RISK_VELOCITY_FIVE_MINUTES", c.VelocityFiveMinutes},
		{"RISK_FAILED_SOME", c.FailedSome, "RISK_FAILED_FEW", c.FailedFew},
		{"RISK_FAILED_MANY", c.FailedMany, "RISK_FAILED_SOME", c.FailedSome},
	} {
		if pair.worsePoints < pair.points {
			return fmt.Errorf("%s: %d is less than %s, which is for a better case", pair.worse, pair.worsePoints, pair.better)
		}
	}
	return nil
}

// checkLimits returns an error if a number of sessions or failures, a speed or a distance is out of
// range.
func (c Config) checkLimits() error {
	switch {
	case c.VelocitySessions < 1:
		return fmt.Errorf("RISK_VELOCITY_SESSIONS: %d is less than 1", c.VelocitySessions)
	case c.SomeFailures < 1:
		return fmt.Errorf("RISK_SOME_FAILURES: %d is less than 1", c.SomeFailures)
	case c.ManyFailures < c.SomeFailures:
		return fmt.Errorf("RISK_MANY_FAILURES: %d is less than RISK_SOME_FAILURES", c.ManyFailures)
	case !(c.TravelMaxKMH > 0 && c.TravelMaxKMH <= math.MaxFloat64):
		return fmt.Errorf("RISK_TRAVEL_MAX_KMH: %v is not a positive number", c.TravelMaxKMH)
	case !(c.TravelMinKM >= 0 && c.TravelMinKM <= math.MaxFloat64):
		return fmt.Errorf("RISK_TRAVEL_MIN_KM: %v is not 0 or a positive number", c.TravelMinKM)
	}
	return nil
}

// checkCountries returns an error if a country is not an ISO 3166 code.
func (c Config) checkCountries() error {
	for _, code := range c.HighRiskCountries {
		if !IsCountry(code) {
			return fmt.Errorf("HIGH_RISK_COUNTRIES: %q is not an ISO 3166 code of two capital letters", code)
		}
	}
	return nil
}
