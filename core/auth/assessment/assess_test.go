package assessment_test

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/ports/signals/signalstest"
)

var now = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

// fixture is the history of one person and the geographic data.
type fixture struct {
	places         map[netip.Addr]risk.Location
	stays          []risk.SignInPlace
	failed         map[time.Duration]int // by the time before now
	sessions       map[time.Duration]int
	err            error
	historyWasRead bool
}

func (f *fixture) Locate(_ context.Context, a netip.Addr) risk.Location { return f.places[a] }

func (f *fixture) FailedSince(_ context.Context, _ auth.UserID, t time.Time) (int, error) {
	return f.failed[now.Sub(t)], f.err
}

func (f *fixture) SessionsSince(_ context.Context, _ auth.UserID, t time.Time) (int, error) {
	return f.sessions[now.Sub(t)], f.err
}

func (f *fixture) SignInPlaces(context.Context, auth.UserID) ([]risk.SignInPlace, error) {
	f.historyWasRead = true
	return f.stays, f.err
}

func (f *fixture) assess(address string, d risk.Device) (assessment.Verdict, error) {
	a := assessment.New(
		assessment.Config{
			Score:  func(s risk.Signals) risk.Assessment { return risk.Assess(authtest.Weights(), s) },
			Bounds: authtest.Bounds(), Binding: trust.BindingPreferred,
		},
		assessment.Ports{History: f, Geography: f, Reputation: signalstest.None{}})
	return a.Assess(context.Background(), assessment.SignIn{
		At: now, User: "u", Address: netip.MustParseAddr(address), Device: d,
	})
}

func TestSignalsAreGathered(t *testing.T) {
	f := &fixture{
		places: map[netip.Addr]risk.Location{netip.MustParseAddr("203.0.113.1"): {State: risk.Known, Country: "DE"}},
		stays:  []risk.SignInPlace{{At: now, Location: risk.Location{State: risk.Known, Country: "FR"}}},
		failed: map[time.Duration]int{15 * time.Minute: 3},
		// seven in the future
		sessions: map[time.Duration]int{-auth.ClockTolerance: 7, time.Minute: 8, 5 * time.Minute: 9},
	}
	v, err := f.assess("203.0.113.1", risk.Device{Confirmed: true, Trusted: true, Proven: true})
	want := risk.Factors{risk.GeographicAnomaly: 20, risk.LoginVelocity: 15, risk.FailedAttempts: 25}
	if err != nil || v.Factors != want || v.Level != auth.Unverified {
		t.Errorf("factors %+v, level %s, error %v; want %+v and UNVERIFIED", v.Factors, v.Level, err, want)
	}
	f.historyWasRead = false
	if _, err := f.assess("203.0.113.2", risk.Device{}); err != nil || f.historyWasRead {
		t.Errorf("without a location: history read %v, error %v", f.historyWasRead, err)
	}
	f.err = errors.New("away")
	if _, err := f.assess("203.0.113.1", risk.Device{}); !errors.Is(err, f.err) {
		t.Errorf("error %v, want that of the past", err)
	}
}

// TestPrivateAddressesNeverTravel uses coordinates for private addresses, as a custom database may
// have.
func TestPrivateAddressesNeverTravel(t *testing.T) {
	far := risk.Location{
		State: risk.Known, Country: "DE", Coordinates: &risk.Coordinates{Latitude: 35.7, Longitude: 139.7},
	}
	near := risk.Location{
		State: risk.Known, Country: "DE", Coordinates: &risk.Coordinates{Latitude: 52.5, Longitude: 13.4},
	}
	for address, want := range map[string]int{
		"203.0.113.1": 40, "2001:db8::1": 40, "100.128.0.1": 40,
		"10.0.0.1": 0, "172.16.9.9": 0, "192.168.1.1": 0, "127.0.0.1": 0, "169.254.1.1": 0, "100.64.0.1": 0,
		"::1": 0, "fd00::1": 0, "fe80::1": 0, "::ffff:10.0.0.1": 0, "::": 0,
	} {
		f := &fixture{
			places: map[netip.Addr]risk.Location{netip.MustParseAddr(address): far},
			stays:  []risk.SignInPlace{{At: now.Add(-time.Hour), Location: near}},
		}
		v, err := f.assess(address, risk.Device{})
		if err != nil || v.Factors[risk.GeographicAnomaly] != want {
			t.Errorf("%s: %d points, error %v, want %d", address, v.Factors[risk.GeographicAnomaly], err, want)
		}
	}
}

// TestHistoryOnlyLowersTrust checks that a score of the history never lowers the score of the points
// and never gives more trust, and that an unknown device stays conspicuous.
func TestHistoryOnlyLowersTrust(t *testing.T) {
	config := authtest.SignIn().Assess()
	rapid.Check(t, func(t *rapid.T) {
		score := rapid.IntRange(0, 100)
		d := risk.Device{Confirmed: rapid.Bool().Draw(t, "confirmed"), Trusted: rapid.Bool().Draw(t, "trusted")}
		d.Proven = d.Confirmed && rapid.Bool().Draw(t, "proven")
		a := risk.Assess(authtest.Weights(), risk.Signals{
			At: now, Device: d, FailedAttempts: rapid.IntRange(0, 7).Draw(t, "failures"),
			Reputation: risk.Reputation{State: risk.Known, Class: risk.AddressClass(rapid.IntRange(0, 4).Draw(t, "class"))},
		})
		before := assessment.Verdict{
			Assessment: a, Points: a.Score, Signals: risk.Signals{Device: d}, Conspicuous: a.Score > config.Bounds.Full,
			Level: trust.Decide(a.Score, d, config.Bounds, config.Binding),
		}
		after, r := before, history.Result{Score: float64(score.Draw(t, "history"))}
		after.AddHistory(r, config)
		switch {
		case after.Score != max(before.Score, r.Rounded()), after.Level > before.Level,
			after.Level > config.HistoryBounds.Level(r.Rounded()):
			t.Fatalf("%+v, with %v of the history %+v", before, r.Score, after)
		case !d.Confirmed && !after.Conspicuous, r.Rounded() > config.HistoryBounds.Full && !after.Conspicuous,
			after.Level == auth.FullTrust && after.Conspicuous:
			t.Fatalf("%+v with the history %v is conspicuous: %v", d, r.Score, after.Conspicuous)
		}
		silent := before
		if silent.AddHistory(history.Result{Silence: history.SilentPerson}, config); !reflect.DeepEqual(silent, before) {
			t.Fatalf("a silent history changes %+v to %+v", before, silent)
		}
	})
}
