package replay_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/signals/signalstest"
	"github.com/tollgate-dev/tollgate/test/must"
)

var start = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

func newReplayer(stepUp replay.Assumption, changes ...func(*signin.Config)) *replay.Replayer {
	c := authtest.SignIn()
	c.Risk.HighRiskCountries = []string{"XX"}
	for _, change := range changes {
		change(&c)
	}
	return replay.New(replay.Config{Assess: c.Assess(), StepUp: stepUp}, signalstest.None{}, signalstest.None{})
}

func knownDevice(t testing.TB, userAgent string) auth.DeviceInfo {
	t.Helper()
	d, err := auth.NewDeviceInfo(auth.DeviceFields{UserAgent: userAgent})
	must.Succeed(t, err)
	return d
}

// step is an event and its expected result. It is an hour after the one before, unless it has
// another time.
type step struct {
	after   time.Duration
	country string
	at      *risk.Coordinates
	device  string
	wrong   bool
	change  func(*replay.Event)
	want    risk.Factors
	level   auth.TrustLevel
}

func runSteps(t *testing.T, r *replay.Replayer, steps []step) {
	t.Helper()
	at := start
	for i, s := range steps {
		if s.after == 0 {
			s.after = time.Hour
		}
		at = at.Add(s.after)
		e := replay.Event{
			At: at, User: "ada", Address: netip.MustParseAddr("203.0.113.1"), Device: knownDevice(t, s.device),
			PasswordCorrect: !s.wrong,
		}
		if s.country != "" || s.at != nil {
			e.Location = &risk.Location{State: risk.Known, Country: s.country, Coordinates: s.at}
		}
		if s.change != nil {
			s.change(&e)
		}
		v, err := r.Next(context.Background(), e)
		must.Succeed(t, err)
		if v.Factors != s.want || v.Level != s.level || v.Score != s.want.Sum() {
			t.Errorf("step %d: %+v, %s; want %+v, %s", i+1, v.Factors, v.Level, s.want, s.level)
		}
	}
}

var berlin, tokyo = &risk.Coordinates{Latitude: 52.52, Longitude: 13.405}, &risk.Coordinates{
	Latitude: 35.68, Longitude: 139.69,
}

func TestFirstDevice(t *testing.T) {
	trusted := func(e *replay.Event) { e.DeviceTrusted = replay.Yes }
	runSteps(t, newReplayer(replay.FirstDevice), []step{
		{country: "DE", at: berlin, want: risk.Factors{risk.DeviceFamiliarity: 30}, level: auth.Unverified},
		{
			country: "DE", at: berlin, change: trusted, want: risk.Factors{risk.DeviceFamiliarity: 15},
			level: auth.LimitedTrust,
		},
		{country: "DE", at: berlin, level: auth.FullTrust},
		{country: "FR", want: risk.Factors{risk.GeographicAnomaly: 20}, level: auth.FullTrust},
		{country: "FR", level: auth.FullTrust}, // learnt
		// A thief's device is unknown, as often as it comes, and teaches nothing.
		{
			country: "JP", at: tokyo, device: "thief", want: risk.Factors{
				risk.DeviceFamiliarity: 30, risk.GeographicAnomaly: 40,
			}, level: auth.HighRisk,
		},
		{
			after: 24 * time.Hour, country: "JP", at: tokyo, device: "thief", want: risk.Factors{
				risk.DeviceFamiliarity: 30, risk.GeographicAnomaly: 20,
			}, level: auth.Unverified,
		},
		{
			country: "JP", at: tokyo, device: "thief", want: risk.Factors{
				risk.DeviceFamiliarity: 30, risk.GeographicAnomaly: 20,
			}, level: auth.Unverified,
		},
		// One that copies the device shows no token.
		{
			country: "DE", at: berlin, change: func(e *replay.Event) { e.DeviceTokenShown = replay.No },
			want: risk.Factors{risk.DeviceFamiliarity: 15}, level: auth.LimitedTrust,
		},
		{
			country: "DE", at: berlin, change: func(e *replay.Event) { e.DeviceTrusted = replay.No },
			level: auth.FullTrust,
		},
		{country: "DE", at: berlin, want: risk.Factors{risk.DeviceFamiliarity: 15}, level: auth.LimitedTrust},
	})
}

func TestStepUpAssumptions(t *testing.T) {
	unknown := step{want: risk.Factors{risk.DeviceFamiliarity: 30}, level: auth.Unverified}
	confirmed := step{want: risk.Factors{risk.DeviceFamiliarity: 15}, level: auth.LimitedTrust}
	other := func(s step, device string, told replay.RecordedBool) step {
		s.device, s.change = device, func(e *replay.Event) { e.StepUpPassed = told }
		return s
	}
	t.Run("none", func(t *testing.T) {
		runSteps(t, newReplayer(replay.NoStepUp), []step{unknown, unknown, other(unknown, "", replay.Yes), confirmed})
	})
	t.Run("all", func(t *testing.T) {
		runSteps(t, newReplayer(replay.AllStepUps), []step{
			unknown, confirmed, other(unknown, "second", replay.No), other(unknown, "second", replay.Unrecorded),
			other(confirmed, "second", replay.Unrecorded),
		})
	})
	t.Run("told", func(t *testing.T) {
		runSteps(t, newReplayer(replay.FirstDevice), []step{
			other(unknown, "", replay.No), other(unknown, "", replay.Yes), confirmed,
		})
	})
	t.Run("high risk", func(t *testing.T) {
		listed := step{
			want: risk.Factors{risk.DeviceFamiliarity: 30, risk.IPReputation: 40}, level: auth.HighRisk,
			change: func(e *replay.Event) { e.Reputation = &risk.Reputation{State: risk.Known, Class: risk.Listed} },
		}
		for _, a := range []replay.Assumption{replay.FirstDevice, replay.AllStepUps} {
			runSteps(t, newReplayer(a), []step{listed, unknown, confirmed})
		}
	})
}

func TestFailures(t *testing.T) {
	factors := func(failed, points int) step {
		return step{
			after: time.Second, wrong: failed > 0, want: risk.Factors{
				risk.DeviceFamiliarity: 30, risk.FailedAttempts: points,
			}, level: auth.TrustLevel(0),
		}
	}
	steps := []step{
		factors(1, 0), factors(1, 10), factors(1, 10), factors(1, 25), factors(1, 25), factors(1, 25), factors(0, 40),
	}
	for i, level := range []auth.TrustLevel{
		auth.Unverified, auth.Unverified, auth.Unverified, auth.Unverified, auth.Unverified, auth.Unverified,
		auth.HighRisk,
	} {
		steps[i].level = level
	}
	steps = append(steps, step{
		after: 15 * time.Minute, want: risk.Factors{risk.DeviceFamiliarity: 30}, level: auth.Unverified,
	})
	runSteps(t, newReplayer(replay.FirstDevice), steps)
}

func TestVelocity(t *testing.T) {
	at := func(after time.Duration, points int, level auth.TrustLevel) step {
		return step{
			after: after, want: risk.Factors{risk.DeviceFamiliarity: 30, risk.LoginVelocity: points}, level: level,
		}
	}
	runSteps(t, newReplayer(replay.NoStepUp), []step{
		at(1, 0, auth.Unverified), at(time.Second, 0, auth.Unverified), at(time.Second, 30, auth.Unverified),
		at(2*time.Minute, 15, auth.Unverified), at(5*time.Minute, 0, auth.Unverified),
	})
}

func TestOrder(t *testing.T) {
	r := newReplayer(replay.FirstDevice)
	e := replay.Event{At: start, User: "ada", Address: netip.MustParseAddr("203.0.113.1")}
	for range 2 { // the same time twice is in order
		if _, err := r.Next(context.Background(), e); err != nil {
			t.Fatal(err)
		}
	}
	e.At, e.User = start.Add(-1), "bob"
	if _, err := r.Next(context.Background(), e); !fault.Is(err, fault.Invalid) {
		t.Errorf("error %v, want fault.Invalid", err)
	}
}

func TestBindingOff(t *testing.T) {
	off := func(c *signin.Config) { c.DeviceBinding = trust.BindingOff }
	mark := func(e *replay.Event) { e.DeviceTrusted = replay.Yes }
	runSteps(t, newReplayer(replay.FirstDevice, off), []step{
		{change: mark, want: risk.Factors{risk.DeviceFamiliarity: 30}, level: auth.Unverified},
		{change: func(e *replay.Event) { e.DeviceTokenShown = replay.No }, level: auth.FullTrust},
	})
}

// TestUnknownDevicesStayUnverified checks that a stolen password alone never gets above UNVERIFIED:
// a device without step-up or MFA does not.
func TestUnknownDevicesStayUnverified(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newReplayer(rapid.SampledFrom([]replay.Assumption{replay.FirstDevice, replay.NoStepUp}).Draw(t,
			"assumption"))
		at := start
		for i := range 40 {
			at = at.Add(time.Duration(rapid.IntRange(0, 3600).Draw(t, "seconds")) * time.Second)
			thief := i > 0 && rapid.Bool().Draw(t, "thief")
			e := replay.Event{
				At: at, User: "ada", Address: netip.MustParseAddr("203.0.113.1"),
				PasswordCorrect: rapid.Bool().Draw(t, "correct") || i == 0,
				DeviceTrusted:   replay.RecordedBool(rapid.IntRange(0, 2).Draw(t, "trusted")),
				Location: &risk.Location{
					State: risk.Known, Country: rapid.SampledFrom([]string{"DE", "FR", "XX"}).Draw(t, "country"),
				},
			}
			d, err := auth.NewDeviceInfo(auth.DeviceFields{UserAgent: fmt.Sprint("thief ", thief)})
			must.Succeed(t, err)
			e.Device = d
			if thief {
				e.StepUpPassed = replay.No
			}
			v, err := r.Next(context.Background(), e)
			must.Succeed(t, err)
			if thief && v.Level > auth.Unverified {
				t.Fatalf("event %d: a thief got %s", i, v.Level)
			}
		}
	})
}
