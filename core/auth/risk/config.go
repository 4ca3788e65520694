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

// Validate returns an error that begins with the name of the first field that is out of range.
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
		{"DeviceConfirmed", c.DeviceConfirmed}, {"DeviceUnknown", c.DeviceUnknown},
		{"OtherCountry", c.OtherCountry}, {"HighRiskCountry", c.HighRiskCountry},
		{"ImpossibleTravel", c.ImpossibleTravel}, {"AddressHidden", c.AddressHidden},
		{"AddressListed", c.AddressListed}, {"VelocityMinute", c.VelocityMinute},
		{"VelocityFiveMinutes", c.VelocityFiveMinutes}, {"FailedFew", c.FailedFew},
		{"FailedSome", c.FailedSome}, {"FailedMany", c.FailedMany},
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
		{"DeviceUnknown", c.DeviceUnknown, "DeviceConfirmed", c.DeviceConfirmed},
		{"AddressListed", c.AddressListed, "AddressHidden", c.AddressHidden},
		{"VelocityMinute", c.VelocityMinute, "VelocityFiveMinutes", c.VelocityFiveMinutes},
		{"FailedSome", c.FailedSome, "FailedFew", c.FailedFew},
		{"FailedMany", c.FailedMany, "FailedSome", c.FailedSome},
	} {
		if pair.worsePoints < pair.points {
			return fmt.Errorf("%s: %d is less than %s, which is for a better case", pair.worse,
				pair.worsePoints, pair.better)
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
