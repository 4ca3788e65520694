package risk_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/test/must"
)

func testConfig() risk.Config {
	c := authtest.Weights()
	c.HighRiskCountries = []string{"XX"}
	return c
}

var now = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

func coordinatesAt(latitude, longitude float64) *risk.Coordinates {
	return &risk.Coordinates{Latitude: latitude, Longitude: longitude}
}

func TestFactors(t *testing.T) {
	berlin, paris := coordinatesAt(52.52, 13.405), coordinatesAt(48.857, 2.352) // 878 km apart
	known := func(country string, c *risk.Coordinates) risk.Location {
		return risk.Location{State: risk.Known, Country: country, Coordinates: c}
	}
	since := func(d time.Duration) risk.History {
		return risk.History{Countries: []string{"DE"}, Last: &risk.LastSignIn{At: now.Add(-d), Coordinates: *berlin}}
	}
	for name, c := range map[string]struct {
		signals risk.Signals
		want    risk.Factors
	}{
		"unknown device": {risk.Signals{}, risk.Factors{risk.DeviceFamiliarity: 30}},
		"marked only": {
			risk.Signals{Device: risk.Device{Trusted: true, Proven: true}}, risk.Factors{risk.DeviceFamiliarity: 30},
		},
		"confirmed device": {
			risk.Signals{Device: risk.Device{Confirmed: true, Proven: true}}, risk.Factors{risk.DeviceFamiliarity: 15},
		},
		"not proven": {
			risk.Signals{Device: risk.Device{Confirmed: true, Trusted: true}}, risk.Factors{
				risk.DeviceFamiliarity: 15,
			},
		},
		"usual country": {
			assuredSignals(risk.Signals{Location: known("DE", paris), History: since(time.Hour)}), risk.Factors{},
		},
		"other country": {
			assuredSignals(risk.Signals{Location: known("FR", nil), History: since(0)}), risk.Factors{
				risk.GeographicAnomaly: 20,
			},
		},
		"high-risk country": {
			assuredSignals(risk.Signals{Location: known("XX", nil)}), risk.Factors{risk.GeographicAnomaly: 30},
		},
		"no history": {assuredSignals(risk.Signals{Location: known("FR", paris)}), risk.Factors{}},
		"no country, a history": {
			assuredSignals(risk.Signals{Location: known("", nil), History: since(time.Hour)}), risk.Factors{
				risk.GeographicAnomaly: 10,
			},
		},
		"no country, far away": {
			assuredSignals(risk.Signals{Location: known("", coordinatesAt(35.7, 139.7)), History: since(time.Hour)}),
			risk.Factors{risk.GeographicAnomaly: 40},
		},
		"other and high-risk country": {
			assuredSignals(risk.Signals{Location: known("XX", nil), History: since(time.Hour)}), risk.Factors{
				risk.GeographicAnomaly: 30,
			},
		},
		"usual and high-risk country": {
			assuredSignals(risk.Signals{Location: known("XX", nil), History: risk.History{Countries: []string{"XX"}}}),
			risk.Factors{risk.GeographicAnomaly: 30},
		},
		"one of two usual countries": {
			assuredSignals(risk.Signals{
				Location: known("FR", nil), History: risk.History{Countries: []string{"DE", "FR"}},
			}), risk.Factors{},
		},
		"far away, without coordinates": {
			assuredSignals(risk.Signals{Location: known("DE", nil), History: since(0)}), risk.Factors{},
		},
		"far away, geography silent": {
			assuredSignals(risk.Signals{
				Location: risk.Location{State: risk.Unanswered, Coordinates: coordinatesAt(35.7, 139.7)},
				History:  since(0),
			}),
			risk.Factors{risk.GeographicAnomaly: 10},
		},
		"high-risk, geography not configured": {
			assuredSignals(risk.Signals{Location: risk.Location{Country: "XX"}}), risk.Factors{},
		},
		"coordinates that are no numbers": {
			assuredSignals(risk.Signals{
				Location: known("DE", coordinatesAt(math.NaN(), math.NaN())), History: since(0),
			}), risk.Factors{},
		},
		"travel at 1756 km/h": {
			assuredSignals(risk.Signals{Location: known("DE", paris), History: since(30 * time.Minute)}), risk.Factors{
				risk.GeographicAnomaly: 40,
			},
		},
		"travel at 878 km/h": {
			assuredSignals(risk.Signals{Location: known("DE", paris), History: since(time.Hour)}), risk.Factors{},
		},
		"travel of 80 km at once": {
			assuredSignals(risk.Signals{Location: known("DE", coordinatesAt(53.24, 13.405)), History: since(0)}),
			risk.Factors{},
		},
		"clock went back": {
			assuredSignals(risk.Signals{Location: known("DE", paris), History: since(-time.Hour)}), risk.Factors{
				risk.GeographicAnomaly: 40,
			},
		},
		"geography silent": {
			assuredSignals(risk.Signals{Location: risk.Location{State: risk.Unanswered}}), risk.Factors{
				risk.GeographicAnomaly: 10,
			},
		},
		"reputation silent": {
			assuredSignals(risk.Signals{Reputation: risk.Reputation{State: risk.Unanswered}}), risk.Factors{
				risk.IPReputation: 5,
			},
		},
		"clean":   {assuredSignals(risk.Signals{Reputation: risk.Reputation{State: risk.Known}}), risk.Factors{}},
		"hosting": {assuredSignals(ratedSignals(risk.Hosting)), risk.Factors{risk.IPReputation: 10}},
		"proxy":   {assuredSignals(ratedSignals(risk.Proxy)), risk.Factors{risk.IPReputation: 10}},
		"tor":     {assuredSignals(ratedSignals(risk.Tor)), risk.Factors{risk.IPReputation: 10}},
		"listed":  {assuredSignals(ratedSignals(risk.Listed)), risk.Factors{risk.IPReputation: 40}},
		"one session": {
			assuredSignals(risk.Signals{Sessions: risk.Velocity{LastMinute: 1, LastFiveMinutes: 1}}), risk.Factors{},
		},
		"two in a minute": {
			assuredSignals(risk.Signals{Sessions: risk.Velocity{LastMinute: 2, LastFiveMinutes: 2}}), risk.Factors{
				risk.LoginVelocity: 30,
			},
		},
		"two in five": {
			assuredSignals(risk.Signals{Sessions: risk.Velocity{LastMinute: 1, LastFiveMinutes: 2}}), risk.Factors{
				risk.LoginVelocity: 15,
			},
		},
		"one failure":    {assuredSignals(risk.Signals{FailedAttempts: 1}), risk.Factors{risk.FailedAttempts: 10}},
		"two failures":   {assuredSignals(risk.Signals{FailedAttempts: 2}), risk.Factors{risk.FailedAttempts: 10}},
		"three failures": {assuredSignals(risk.Signals{FailedAttempts: 3}), risk.Factors{risk.FailedAttempts: 25}},
		"five failures":  {assuredSignals(risk.Signals{FailedAttempts: 5}), risk.Factors{risk.FailedAttempts: 25}},
		"six failures":   {assuredSignals(risk.Signals{FailedAttempts: 6}), risk.Factors{risk.FailedAttempts: 40}},
	} {
		t.Run(name, func(t *testing.T) {
			c.signals.At = now
			if got := risk.Assess(testConfig(), c.signals); got.Factors != c.want || got.Score != c.want.Sum() {
				t.Errorf("factors %+v, score %d; want %+v", got.Factors, got.Score, c.want)
			}
		})
	}
}

func assuredSignals(s risk.Signals) risk.Signals {
	s.Device = risk.Device{Confirmed: true, Trusted: true, Proven: true}
	return s
}

func ratedSignals(c risk.AddressClass) risk.Signals {
	return risk.Signals{Reputation: risk.Reputation{State: risk.Known, Class: c}}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b *risk.Coordinates
		want float64
	}{
		{coordinatesAt(0, 0), coordinatesAt(0, 0), 0},
		{coordinatesAt(0, 0), coordinatesAt(0, 180), 20015.1},
		{coordinatesAt(90, 0), coordinatesAt(-90, 0), 20015.1},
		{coordinatesAt(0, 179.5), coordinatesAt(0, -179.5), 111.2},
		{coordinatesAt(52.52, 13.405), coordinatesAt(48.857, 2.352), 877.5},
	} {
		if got := c.a.DistanceKM(*c.b); math.Abs(got-c.want) > 1 {
			t.Errorf("%v to %v: %.1f km, want %.1f", *c.a, *c.b, got, c.want)
		}
	}
}

func drawSignals(t *rapid.T) risk.Signals {
	state := rapid.SampledFrom([]risk.SourceState{risk.NotConfigured, risk.Unanswered, risk.Known})
	return risk.Signals{
		At: now,
		Device: risk.Device{
			Confirmed: rapid.Bool().Draw(t, "confirmed"), Trusted: rapid.Bool().Draw(t, "trusted"),
			Proven: rapid.Bool().Draw(t, "proven"),
		},
		Location: risk.Location{
			State:   state.Draw(t, "location"),
			Country: rapid.SampledFrom([]string{"DE", "FR", "XX", ""}).Draw(t, "country"),
			Coordinates: coordinatesAt(rapid.Float64Range(-90, 90).Draw(t, "latitude"),
				rapid.Float64Range(-180, 180).Draw(t, "longitude")),
		},
		History: risk.History{Countries: []string{"DE"}, Last: &risk.LastSignIn{At: now.Add(-time.Hour)}},
		Reputation: risk.Reputation{
			State: state.Draw(t, "reputation"), Class: risk.AddressClass(rapid.IntRange(0, 4).Draw(t, "class")),
		},
		Sessions: risk.Velocity{
			LastMinute: rapid.IntRange(0, 9).Draw(t, "minute"), LastFiveMinutes: rapid.IntRange(0, 9).Draw(t, "five"),
		},
		FailedAttempts: rapid.IntRange(0, 1000).Draw(t, "failures"),
	}
}

func TestScoreIsClampedAndTheSumOfItsFactors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSignals(t)
		a := risk.Assess(testConfig(), s)
		if a.Score < 0 || a.Score > risk.MaxScore || a.Score != min(a.Factors.Sum(), risk.MaxScore) {
			t.Fatalf("score %d of %+v", a.Score, a.Factors)
		}
		for _, why := range allReasons(a) {
			if why == "" {
				t.Fatalf("a factor is not explained: %+v", a.Reasons)
			}
		}
		silent := s.Location.State == risk.Unanswered || s.Location.State == risk.Known && s.Location.Country == ""
		if slices.Contains(a.SilentSources, risk.SilentGeography) != silent ||
			slices.Contains(a.SilentSources, risk.SilentReputation) != (s.Reputation.State == risk.Unanswered) {
			t.Fatalf("silent %v for %+v", a.SilentSources, s)
		}
	})
}

func allReasons(a risk.Assessment) []string {
	return []string{
		a.Reasons[risk.DeviceFamiliarity], a.Reasons[risk.GeographicAnomaly], a.Reasons[risk.IPReputation],
		a.Reasons[risk.LoginVelocity], a.Reasons[risk.FailedAttempts],
	}
}

// allPoints returns the factors in the order of allReasons.
func allPoints(a risk.Assessment) []int {
	f := a.Factors
	return []int{
		f[risk.DeviceFamiliarity], f[risk.GeographicAnomaly], f[risk.IPReputation], f[risk.LoginVelocity],
		f[risk.FailedAttempts],
	}
}

func TestReasons(t *testing.T) {
	berlin := *coordinatesAt(52.52, 13.405)
	a := risk.Assess(testConfig(), risk.Signals{
		At:       now,
		Location: risk.Location{State: risk.Known, Country: "JP", Coordinates: coordinatesAt(35.7, 139.7)},
		History: risk.History{
			Countries: []string{"DE"}, Last: &risk.LastSignIn{At: now.Add(-90 * time.Minute), Coordinates: berlin},
		},
		Reputation:     risk.Reputation{State: risk.Known, Class: risk.Tor},
		Sessions:       risk.Velocity{LastMinute: 3, LastFiveMinutes: 3},
		FailedAttempts: 4,
	})
	want := []string{
		"no step-up or MFA was passed on the device", "8915 km from the last confirmed sign-in, 1.5 hours before",
		"the address is that of a Tor exit", "other sessions within one minute: 3",
		"failed sign-ins within 15 minutes: 4",
	}
	if got := allReasons(a); !slices.Equal(got, want) {
		t.Errorf("reasons\n%q, want\n%q", got, want)
	}
}

func TestLearn(t *testing.T) {
	known := func(country string, c *risk.Coordinates) risk.Location {
		return risk.Location{State: risk.Known, Country: country, Coordinates: c}
	}
	h := risk.BuildHistory([]risk.SignInPlace{
		{At: now, Location: risk.Location{State: risk.Unanswered, Country: "XX", Coordinates: coordinatesAt(9, 9)}},
		{At: now.Add(-1 * time.Hour), Location: known("DE", nil)},
		{At: now.Add(-2 * time.Hour), Location: known("", coordinatesAt(1, 1))},
		{At: now.Add(-3 * time.Hour), Location: known("FR", coordinatesAt(2, 2))},
		{At: now.Add(-4 * time.Hour), Location: known("DE", coordinatesAt(3, 3))},
	})
	if !slices.Equal(h.Countries, []string{"DE", "FR"}) || h.Last == nil ||
		h.Last.Coordinates != *coordinatesAt(1, 1) ||
		!h.Last.At.Equal(now.Add(-2*time.Hour)) {
		t.Errorf("history is %+v", h)
	}
	if h := risk.BuildHistory(nil); h.Countries != nil || h.Last != nil {
		t.Errorf("without stays: %+v", h)
	}
}

// worseSignals returns signals of which one is worse or equal.
func worseSignals(t *rapid.T, s risk.Signals) risk.Signals {
	more := rapid.IntRange(0, 10).Draw(t, "more")
	switch rapid.IntRange(0, 7).Draw(t, "what") {
	case 0:
		s.FailedAttempts += more
	case 1:
		s.Sessions.LastMinute, s.Sessions.LastFiveMinutes = s.Sessions.LastMinute+more, s.Sessions.LastFiveMinutes+more
	case 2:
		s.Device.Proven = false
	case 3:
		s.Device.Confirmed = false
	case 4:
		s.Device.Trusted = false
	case 5:
		if s.Reputation.State == risk.Known {
			s.Reputation.Class = min(s.Reputation.Class+risk.AddressClass(more), risk.Listed)
		} else {
			s.Reputation.State, s.Reputation.Class = risk.Known, risk.Listed
		}
	case 6:
		if s.Location.State != risk.Unanswered {
			s.Location.State, s.Location.Country = risk.Known, "XX"
		}
	case 7: // nearer in time is faster
		last := *s.History.Last
		last.At = last.At.Add(time.Duration(more) * 6 * time.Minute)
		s.History.Last = &last
	}
	return s
}

// TestScoreIsMonotone checks that worse signals never lower a factor, for any weights, and never
// raise a level, and that a cap never raises a level.
func TestScoreIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawSignals(t)
		after := worseSignals(t, before)
		c := drawWeights(t)
		a, b := risk.Assess(c, before), risk.Assess(c, after)
		for i, n := range allPoints(b) {
			if n < allPoints(a)[i] {
				t.Fatalf("factor %d fell from %+v to %+v", i, a.Factors, b.Factors)
			}
		}
		if b.Score < a.Score {
			t.Fatalf("score fell from %d to %d", a.Score, b.Score)
		}
		for _, binding := range []trust.Binding{trust.BindingPreferred, trust.BindingRequired, trust.BindingOff} {
			x := trust.Decide(a.Score, before.Device, authtest.Bounds(), binding)
			y := trust.Decide(b.Score, after.Device, authtest.Bounds(), binding)
			if y > x {
				t.Fatalf("%s: level rose from %s to %s", binding, x, y)
			}
			if y > authtest.Bounds().Level(b.Score) {
				t.Fatalf("%s: the cap raised a level to %s", binding, y)
			}
			if !after.Device.Confirmed && y > auth.Unverified {
				t.Fatalf("%s: a device never confirmed got %s", binding, y)
			}
			if y == auth.FullTrust && !after.Device.Assured() {
				t.Fatalf("%s: FULL_TRUST without an assured device", binding)
			}
		}
	})
}

// drawWeights returns weights that Validate accepts.
func drawWeights(t *rapid.T) risk.Config {
	c := testConfig()
	steps := func(name string, n int) []int {
		list := rapid.SliceOfN(rapid.IntRange(0, risk.MaxScore), n, n).Draw(t, name)
		slices.Sort(list)
		return list
	}
	device, address, pace, failed := steps("device", 2), steps("address", 2), steps("velocity", 2), steps("failed", 3)
	place := steps("place", 3)
	c.DeviceConfirmed, c.DeviceUnknown = device[0], device[1]
	c.AddressHidden, c.AddressListed = address[0], address[1]
	c.VelocityFiveMinutes, c.VelocityMinute = pace[0], pace[1]
	c.FailedFew, c.FailedSome, c.FailedMany = failed[0], failed[1], failed[2]
	c.OtherCountry, c.HighRiskCountry, c.ImpossibleTravel = place[0], place[1], place[2]
	must.Succeed(t, c.Validate())
	return c
}

func TestConfig(t *testing.T) {
	if err := authtest.Weights().Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	for name, spoil := range map[string]func(*risk.Config){
		"negative weight": func(c *risk.Config) { c.FailedMany = -1 },
		"huge weight":     func(c *risk.Config) { c.AddressListed = 101 },
		"unknown device":  func(c *risk.Config) { c.DeviceUnknown = c.DeviceConfirmed - 1 },
		"listed address":  func(c *risk.Config) { c.AddressListed = c.AddressHidden - 1 },
		"velocity":        func(c *risk.Config) { c.VelocityMinute = c.VelocityFiveMinutes - 1 },
		"some failures":   func(c *risk.Config) { c.FailedSome = c.FailedFew - 1 },
		"many failures":   func(c *risk.Config) { c.FailedMany = c.FailedSome - 1 },
		"order":           func(c *risk.Config) { c.ManyFailures = c.SomeFailures - 1 },
		"no sessions":     func(c *risk.Config) { c.VelocitySessions = 0 },
		"no speed":        func(c *risk.Config) { c.TravelMaxKMH = 0 },
	} {
		c := authtest.Weights()
		spoil(&c)
		if c.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestParseClass(t *testing.T) {
	for name, want := range map[string]risk.AddressClass{
		"clean": risk.Clean, "hosting": risk.Hosting, "proxy": risk.Proxy, "tor": risk.Tor, "listed": risk.Listed,
	} {
		if got, ok := risk.ParseAddressClass(name); !ok || got != want {
			t.Errorf("%s is class %d, %v", name, got, ok)
		}
	}
	for _, name := range []string{"", "Tor", "bad"} {
		if got, ok := risk.ParseAddressClass(name); ok {
			t.Errorf("%q is class %d", name, got)
		}
	}
}

func TestIsCountry(t *testing.T) {
	for code, want := range map[string]bool{
		"DE": true, "XK": true, "": false, "D": false, "DEU": false, "de": false, "12": false, "Ä": false,
	} {
		if risk.IsCountry(code) != want {
			t.Errorf("%q is a country's code: %v", code, !want)
		}
	}
}
