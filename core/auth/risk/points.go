package risk

import "fmt"

// Weight is a number of Config as operators set it.
type Weight struct {
	Field   any    // a pointer to the field, *int or *float64
	Key     string // in the file of weights; the first part is the factor, as in the audit log
	Default string
	Meaning string
}

// Weights returns the weights of c with their defaults (contract A-28).
func (c *Config) Weights() []Weight {
	return []Weight{
		{&c.DeviceConfirmed, "deviceFamiliarity.confirmed", "15",
			"points for a confirmed device that is not trusted or does not show its device token"},
		{&c.DeviceUnknown, "deviceFamiliarity.unknown", "30", "points for a device that is not confirmed"},
		{&c.OtherCountry, "geographicAnomaly.otherCountry", "20",
			"points for a country that is not usual for the person"},
		{&c.HighRiskCountry, "geographicAnomaly.highRiskCountry", "30",
			"points for a country that is listed as one of high risk"},
		{&c.ImpossibleTravel, "geographicAnomaly.impossibleTravel", "40", "points for impossible travel"},
		{&c.TravelMaxKMH, "geographicAnomaly.travelMaxKmh", "900",
			"the speed above which travel is impossible, in km/h"},
		{&c.TravelMinKM, "geographicAnomaly.travelMinKm", "100",
			"the distance up to which travel is never impossible, in km"},
		{&c.AddressHidden, "ipReputation.hidden", "10",
			"points for an address of a hosting company, proxy or Tor exit"},
		{&c.AddressListed, "ipReputation.listed", "40", "points for an address that is listed as bad"},
		{&c.VelocitySessions, "loginVelocity.sessions", "2",
			"the number of other sessions within a short time that adds points"},
		{&c.VelocityMinute, "loginVelocity.minute", "30", "points for so many sessions within one minute"},
		{&c.VelocityFiveMinutes, "loginVelocity.fiveMinutes", "15",
			"points for so many sessions within five minutes"},
		{&c.FailedFew, "failedAttempts.few", "10", "points for one failed sign-in or more"},
		{&c.FailedSome, "failedAttempts.some", "25", "points for someFrom failed sign-ins or more"},
		{&c.FailedMany, "failedAttempts.many", "40", "points for manyFrom failed sign-ins or more"},
		{&c.SomeFailures, "failedAttempts.someFrom", "3", "the number of failed sign-ins from which some applies"},
		{&c.ManyFailures, "failedAttempts.manyFrom", "6", "the number of failed sign-ins from which many applies"},
	}
}

// checkPoints returns an error if points are not in the range 0 to MaxScore, or are fewer than those
// of a better case.
func (c Config) checkPoints() error {
	type points struct {
		name string
		n    int
	}
	for _, cases := range [][]points{ // of one signal, from the best to the worst
		{{"DeviceConfirmed", c.DeviceConfirmed}, {"DeviceUnknown", c.DeviceUnknown}},
		{{"OtherCountry", c.OtherCountry}},
		{{"HighRiskCountry", c.HighRiskCountry}},
		{{"ImpossibleTravel", c.ImpossibleTravel}},
		{{"AddressHidden", c.AddressHidden}, {"AddressListed", c.AddressListed}},
		{{"VelocityFiveMinutes", c.VelocityFiveMinutes}, {"VelocityMinute", c.VelocityMinute}},
		{{"FailedFew", c.FailedFew}, {"FailedSome", c.FailedSome}, {"FailedMany", c.FailedMany}},
	} {
		for i, p := range cases {
			if p.n < 0 || p.n > MaxScore {
				return fmt.Errorf("%s: %d is not in the range 0 to %d", p.name, p.n, MaxScore)
			}
			if i > 0 && p.n < cases[i-1].n {
				return fmt.Errorf("%s: %d is less than %s, which is for a better case", p.name, p.n, cases[i-1].name)
			}
		}
	}
	return nil
}
