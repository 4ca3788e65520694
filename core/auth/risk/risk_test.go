package risk_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
)

func config() risk.Config {
	c := risk.Defaults()
	c.HighRiskCountries = []string{"XX"}
	return c
}

var now = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

func at(latitude, longitude float64) *risk.Coordinates {
	return &risk.Coordinates{Latitude: latitude, Longitude: longitude}
}

func TestFactors(t *testing.T) {
	berlin, paris := at(52.52, 13.405), at(48.857, 2.352) // 878 km apart
	known := func(country string, c *risk.Coordinates) risk.Location {
		return risk.Location{State: risk.Known, Country: country, Coordinates: c}
	}
	since := func(d time.Duration) risk.History {
		return risk.History{Countries: []string{"DE"}, Last: &risk.Visit{At: now.Add(-d), Coordinates: *berlin}}
	}
	for name, c := range map[string]struct {
		signals risk.Signals
		want    risk.Factors
	}{
		"unknown device":    {risk.Signals{}, risk.Factors{DeviceFamiliarity: 30}},
		"marked only":       {risk.Signals{Device: trust.Device{Trusted: true, Proven: true}}, risk.Factors{DeviceFamiliarity: 30}},
		"confirmed device":  {risk.Signals{Device: trust.Device{Confirmed: true, Proven: true}}, risk.Factors{DeviceFamiliarity: 15}},
		"not proven":        {risk.Signals{Device: trust.Device{Confirmed: true, Trusted: true}}, risk.Factors{DeviceFamiliarity: 15}},
		"usual country":     {assured(risk.Signals{Location: known("DE", paris), History: since(time.Hour)}), risk.Factors{}},
		"other country":     {assured(risk.Signals{Location: known("FR", nil), History: since(0)}), risk.Factors{GeographicAnomaly: 20}},
		"high-risk country": {assured(risk.Signals{Location: known("XX", nil)}), risk.Factors{GeographicAnomaly: 30}},
		"no history":        {assured(risk.Signals{Location: known("FR", paris)}), risk.Factors{}},
		"travel at 1756 km/h": {
			assured(risk.Signals{Location: known("DE", paris), History: since(30 * time.Minute)}), risk.Factors{GeographicAnomaly: 40},
		},
		"travel at 878 km/h": {assured(risk.Signals{Location: known("DE", paris), History: since(time.Hour)}), risk.Factors{}},
		"travel of 80 km at once": {
			assured(risk.Signals{Location: known("DE", at(53.24, 13.405)), History: since(0)}), risk.Factors{},
		},
		"clock went back": {
			assured(risk.Signals{Location: known("DE", paris), History: since(-time.Hour)}), risk.Factors{GeographicAnomaly: 40},
		},
		"geography silent":  {assured(risk.Signals{Location: risk.Location{State: risk.Unanswered}}), risk.Factors{GeographicAnomaly: 10}},
		"reputation silent": {assured(risk.Signals{Reputation: risk.Reputation{State: risk.Unanswered}}), risk.Factors{IPReputation: 5}},
		"clean":             {assured(risk.Signals{Reputation: risk.Reputation{State: risk.Known}}), risk.Factors{}},
		"hosting":           {assured(rated(risk.Hosting)), risk.Factors{IPReputation: 10}},
		"proxy":             {assured(rated(risk.Proxy)), risk.Factors{IPReputation: 10}},
		"tor":               {assured(rated(risk.Tor)), risk.Factors{IPReputation: 10}},
		"listed":            {assured(rated(risk.Listed)), risk.Factors{IPReputation: 40}},
		"one session":       {assured(risk.Signals{Sessions: risk.Velocity{LastMinute: 1, LastFiveMinutes: 1}}), risk.Factors{}},
		"two in a minute":   {assured(risk.Signals{Sessions: risk.Velocity{LastMinute: 2, LastFiveMinutes: 2}}), risk.Factors{LoginVelocity: 30}},
		"two in five":       {assured(risk.Signals{Sessions: risk.Velocity{LastMinute: 1, LastFiveMinutes: 2}}), risk.Factors{LoginVelocity: 15}},
		"one failure":       {assured(risk.Signals{FailedAttempts: 1}), risk.Factors{FailedAttempts: 10}},
		"two failures":      {assured(risk.Signals{FailedAttempts: 2}), risk.Factors{FailedAttempts: 10}},
		"three failures":    {assured(risk.Signals{FailedAttempts: 3}), risk.Factors{FailedAttempts: 25}},
		"five failures":     {assured(risk.Signals{FailedAttempts: 5}), risk.Factors{FailedAttempts: 25}},
		"six failures":      {assured(risk.Signals{FailedAttempts: 6}), risk.Factors{FailedAttempts: 40}},
	} {
		t.Run(name, func(t *testing.T) {
			c.signals.At = now
			if got := risk.Assess(config(), c.signals); got.Factors != c.want || got.Score != c.want.Sum() {
				t.Errorf("factors %+v, score %d; want %+v", got.Factors, got.Score, c.want)
			}
		})
	}
}

func assured(s risk.Signals) risk.Signals {
	s.Device = trust.Device{Confirmed: true, Trusted: true, Proven: true}
	return s
}

func rated(c risk.Class) risk.Signals {
	return risk.Signals{Reputation: risk.Reputation{State: risk.Known, Class: c}}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b *risk.Coordinates
		want float64
	}{
		{at(0, 0), at(0, 0), 0},
		{at(0, 0), at(0, 180), 20015.1},
		{at(90, 0), at(-90, 0), 20015.1},
		{at(0, 179.5), at(0, -179.5), 111.2},
		{at(52.52, 13.405), at(48.857, 2.352), 877.5},
	} {
		if got := c.a.DistanceKM(*c.b); math.Abs(got-c.want) > 1 {
			t.Errorf("%v to %v: %.1f km, want %.1f", *c.a, *c.b, got, c.want)
		}
	}
}

func signals(t *rapid.T) risk.Signals {
	state := rapid.SampledFrom([]risk.State{risk.NotConfigured, risk.Unanswered, risk.Known})
	return risk.Signals{
		At: now,
		Device: trust.Device{
			Confirmed: rapid.Bool().Draw(t, "confirmed"), Trusted: rapid.Bool().Draw(t, "trusted"), Proven: rapid.Bool().Draw(t, "proven"),
		},
		Location: risk.Location{
			State: state.Draw(t, "location"), Country: rapid.SampledFrom([]string{"DE", "FR", "XX", ""}).Draw(t, "country"),
			Coordinates: at(rapid.Float64Range(-90, 90).Draw(t, "latitude"), rapid.Float64Range(-180, 180).Draw(t, "longitude")),
		},
		History:        risk.History{Countries: []string{"DE"}, Last: &risk.Visit{At: now.Add(-time.Hour)}},
		Reputation:     risk.Reputation{State: state.Draw(t, "reputation"), Class: risk.Class(rapid.IntRange(0, 4).Draw(t, "class"))},
		Sessions:       risk.Velocity{LastMinute: rapid.IntRange(0, 9).Draw(t, "minute"), LastFiveMinutes: rapid.IntRange(0, 9).Draw(t, "five")},
		FailedAttempts: rapid.IntRange(0, 1000).Draw(t, "failures"),
	}
}

func TestScoreIsClampedAndTheSumOfItsFactors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := risk.Assess(config(), signals(t))
		if a.Score < 0 || a.Score > risk.MaxScore || a.Score != min(a.Factors.Sum(), risk.MaxScore) {
			t.Fatalf("score %d of %+v", a.Score, a.Factors)
		}
	})
}

// Worse signals never make a better score, and never a higher level.
func TestScoreIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := signals(t)
		after := before
		switch rapid.IntRange(0, 4).Draw(t, "what") {
		case 0:
			after.FailedAttempts += rapid.IntRange(0, 10).Draw(t, "more")
		case 1:
			after.Sessions.LastMinute += rapid.IntRange(0, 10).Draw(t, "more")
		case 2:
			after.Device.Proven = false
		case 3:
			after.Device.Confirmed = false
		case 4:
			after.Reputation.State, after.Reputation.Class = risk.Known, risk.Listed
		}
		a, b := risk.Assess(config(), before), risk.Assess(config(), after)
		if b.Score < a.Score {
			t.Fatalf("score fell from %d to %d", a.Score, b.Score)
		}
		for _, binding := range []trust.Binding{trust.BindingPreferred, trust.BindingRequired, trust.BindingOff} {
			x := trust.Decide(a.Score, before.Device, trust.DefaultBounds(), binding)
			y := trust.Decide(b.Score, after.Device, trust.DefaultBounds(), binding)
			if y > x {
				t.Fatalf("%s: level rose from %s to %s", binding, x, y)
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

func TestConfig(t *testing.T) {
	if err := risk.Defaults().Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	for name, spoil := range map[string]func(*risk.Config){
		"negative weight": func(c *risk.Config) { c.FailedMany = -1 },
		"huge weight":     func(c *risk.Config) { c.AddressListed = 101 },
		"order":           func(c *risk.Config) { c.ManyFailures = c.SomeFailures - 1 },
		"no sessions":     func(c *risk.Config) { c.VelocitySessions = 0 },
		"no speed":        func(c *risk.Config) { c.TravelMaxKMH = 0 },
	} {
		c := risk.Defaults()
		spoil(&c)
		if c.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
