package risk

import (
	"errors"
	"fmt"
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

// Validate returns an error that names a weight outside 0 to 100, or weights and bounds that are
// out of order.
func (c Config) Validate() error {
	for name, points := range map[string]int{
		"DeviceConfirmed": c.DeviceConfirmed, "DeviceUnknown": c.DeviceUnknown, "OtherCountry": c.OtherCountry,
		"HighRiskCountry": c.HighRiskCountry, "ImpossibleTravel": c.ImpossibleTravel, "AddressHidden": c.AddressHidden,
		"AddressListed": c.AddressListed, "VelocityMinute": c.VelocityMinute, "VelocityFiveMinutes": c.VelocityFiveMinutes,
		"FailedFew": c.FailedFew, "FailedSome": c.FailedSome, "FailedMany": c.FailedMany,
	} {
		if points < 0 || points > MaxScore {
			return fmt.Errorf("risk weight %s is %d, 0 to %d are allowed", name, points, MaxScore)
		}
	}
	if c.DeviceConfirmed > c.DeviceUnknown || c.VelocityFiveMinutes > c.VelocityMinute ||
		c.FailedFew > c.FailedSome || c.FailedSome > c.FailedMany || c.AddressHidden > c.AddressListed {
		return errors.New("risk weights must be in order: a worse signal must not have fewer points than a less bad one")
	}
	if c.SomeFailures < 1 || c.ManyFailures < c.SomeFailures || c.VelocitySessions < 1 {
		return errors.New("the bounds of failed attempts and sessions must be 1 or more, and in order")
	}
	if c.TravelMaxKMH <= 0 || c.TravelMinKM < 0 {
		return errors.New("the bounds of travel must be positive")
	}
	return nil
}
