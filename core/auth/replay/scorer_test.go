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
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/signals/signalstest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// scorers replays the same events with each scorer.
type scorers map[replay.Scorer]*replay.Replayer

// newScorers returns replayers that have seen 20 people sign in on 40 days, with a step-up.
func newScorers(t testing.TB) scorers {
	t.Helper()
	s := scorers{}
	for _, scorer := range []replay.Scorer{replay.Points, replay.History, replay.Both} {
		s[scorer] = replay.New(replay.Config{
			Assess: authtest.SignIn().Assess(), StepUp: replay.FirstDevice, Scorer: scorer,
		}, signalstest.None{}, signalstest.None{})
	}
	for d := range 40 {
		for p := range 20 {
			e := homeEvent(t, p, start.Add(time.Duration(d)*24*time.Hour+time.Duration(p)*time.Minute))
			e.StepUpPassed = replay.Yes
			s.next(t, e)
		}
	}
	return s
}

// homeEvent returns a sign-in of a person from home.
func homeEvent(t testing.TB, person int, at time.Time) replay.Event {
	return replay.Event{
		At: at, User: auth.UserID(fmt.Sprint("person ", person)),
		Address: netip.MustParseAddr(fmt.Sprintf("203.0.113.%d", person+1)), PasswordCorrect: true,
		Device:   knownDevice(t, "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
		Location: &risk.Location{State: risk.Known, Country: "DE", Network: risk.Network{ASN: 64500}},
	}
}

func (s scorers) next(t testing.TB, e replay.Event) map[replay.Scorer]replay.Verdict {
	t.Helper()
	verdicts := map[replay.Scorer]replay.Verdict{}
	for scorer, r := range s {
		v, err := r.Next(context.Background(), e)
		must.Succeed(t, err)
		verdicts[scorer] = v
	}
	return verdicts
}

// attack returns a sign-in with a copied device from another provider.
func attack(t testing.TB, at time.Time) replay.Event {
	e := homeEvent(t, 0, at)
	e.Address = netip.MustParseAddr("198.51.100.1")
	e.Location = &risk.Location{State: risk.Known, Country: "DE", Network: risk.Network{ASN: 64999}}
	return e
}

func TestScorers(t *testing.T) {
	s := newScorers(t)
	later := start.Add(41 * 24 * time.Hour)
	v := s.next(t, homeEvent(t, 0, later))
	if p := v[replay.Points]; p.Score != 15 || p.RiskScore != 15 || p.History != nil || p.Learnt != nil {
		t.Errorf("points: %+v", p)
	}
	if h := v[replay.History]; h.RiskScore != h.History.Score || h.RiskScore > history.UsualScore || h.Points != 15 ||
		len(h.Learnt) == 0 {
		t.Errorf("history: %+v", h)
	}
	if b := v[replay.Both]; b.RiskScore != float64(b.Score) || b.Score != v[replay.History].Score || b.Conspicuous {
		t.Errorf("both: %+v", b)
	}
	v = s.next(t, attack(t, later.Add(time.Hour)))
	if p, h, b := v[replay.Points], v[replay.History],
		v[replay.Both]; p.Score != 15 || h.RiskScore < 30 || b.Score != h.Score || b.Level >= p.Level {
		t.Errorf("an attack with a copied device: %d, %v, %d at %s", p.Score, h.RiskScore, b.Score, b.Level)
	}
	v = s.next(t, homeEvent(t, 99, later.Add(2*time.Hour)))
	if p, h, b := v[replay.Points], v[replay.History],
		v[replay.Both]; h.History.Silence != history.SilentPerson || h.RiskScore != 55 || b.Score != p.Score {
		t.Errorf("a newcomer: %+v, %+v", h, b)
	}
}

// TestRepeatedAttack checks that an attacker with a copied device, whose records do not say whether
// the token was shown, does not become familiar.
func TestRepeatedAttack(t *testing.T) {
	for _, passed := range []replay.RecordedBool{replay.Unrecorded, replay.No} {
		s := newScorers(t)
		at := start.Add(41 * 24 * time.Hour)
		var first float64
		for n := range 30 {
			e := attack(t, at.Add(time.Duration(7*n)*time.Hour))
			e.StepUpPassed = passed
			v := s.next(t, e)[replay.History]
			if first == 0 {
				first = v.RiskScore
			}
			if v.RiskScore < first-.5 || v.Learnt != nil {
				t.Fatalf("attempt %d has the score %v, the first one %v; %d counts are learnt", n+1, v.RiskScore, first,
					len(v.Learnt))
			}
		}
	}
}

// TestHistoryNeverRaisesTrust checks that the history, whatever it has learnt, never gives a lower
// score or more trust than the points.
func TestHistoryNeverRaisesTrust(t *testing.T) {
	s := newScorers(t)
	at := start.Add(41 * 24 * time.Hour)
	bounds := authtest.Bounds()
	rapid.Check(t, func(rt *rapid.T) {
		at = at.Add(time.Duration(rapid.IntRange(1, 100_000).Draw(rt, "seconds")) * time.Second)
		e := homeEvent(t, rapid.IntRange(0, 21).Draw(rt, "person"), at)
		if rapid.Bool().Draw(rt, "away") {
			e.Address = netip.MustParseAddr("198.51.100.1")
		}
		e.DeviceTrusted = replay.RecordedBool(rapid.IntRange(0, 2).Draw(rt, "trusted"))
		e.DeviceTokenShown = replay.RecordedBool(rapid.IntRange(0, 2).Draw(rt, "token"))
		e.StepUpPassed = replay.RecordedBool(rapid.IntRange(0, 2).Draw(rt, "step-up"))
		v := s.next(t, e)[replay.Both]
		if without := trust.Decide(v.Points, v.Signals.Device, bounds, trust.BindingPreferred); v.Score < v.Points ||
			v.Level > without {
			rt.Fatalf("%+v, with the points alone %s", v, without)
		}
	})
}

func TestParseScorer(t *testing.T) {
	for _, name := range []string{"points", "history", "both"} {
		if s, err := replay.ParseScorer(name); err != nil || string(s) != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := replay.ParseScorer("none"); !fault.Is(err, fault.Invalid) {
		t.Errorf("an unknown scorer: %v", err)
	}
}

// calibration returns an empty calibration for a scorer.
func calibration(scorer replay.Scorer) *replay.Calibration {
	return replay.New(replay.Config{Assess: authtest.SignIn().Assess(), Scorer: scorer}, signalstest.None{},
		signalstest.None{}).Calibration()
}

// scored returns the verdict on a sign-in from a confirmed device with a score of the points, of
// which 15 are those of the device, and one of the history; 0 if it is silent.
func scored(points, ofHistory int) *replay.Verdict {
	v := &replay.Verdict{Points: points, History: &history.Result{Score: float64(ofHistory)}}
	v.Score, v.Factors[risk.DeviceFamiliarity], v.Signals.Device.Confirmed = max(points, ofHistory), 15, true
	return v
}

func TestSuggest(t *testing.T) {
	c := calibration(replay.Points)
	for n := range 100 {
		c.Add(scored(n, 0), []string{"", replay.LegitimateLabel}[n%2])
	}
	for n := range 10 {
		c.Add(scored(n*10+9, 0), "thief")
	}
	c.Add(scored(100, 0), "robber")
	got, err := c.Suggest(.2)
	must.Succeed(t, err)
	want := replay.Suggestion{
		Bounds: trust.Bounds{Full: 79, Limited: 94, Unverified: 98}, Legitimate: replay.Outcome{"legit", 100, 20, 5, 1},
		Attacks: []replay.Outcome{{"robber", 1, 1, 1, 1}, {"thief", 10, 2, 1, 1}},
		Present: replay.Outcome{"legit", 100, 79, 59, 39},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || challengedShare(got.Legitimate) != .2 {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, target := range []float64{0, 1, -1} {
		if _, err := c.Suggest(target); !fault.Is(err, fault.Invalid) {
			t.Errorf("target %v: %v", target, err)
		}
	}
	none := calibration(replay.Points)
	none.Add(scored(7, 0), "thief")
	if _, err := none.Suggest(.1); !fault.Is(err, fault.Invalid) {
		t.Errorf("no legitimate sign-ins: %v", err)
	}
}

// TestSuggestOfHistory checks that bounds of the history are suggested next to those of the points,
// without the points of the device.
func TestSuggestOfHistory(t *testing.T) {
	c := calibration(replay.Both)
	for n := range 100 {
		c.Add(scored(35, n), "") // 20 points without those of the device are not above the bound
	}
	for range 5 {
		c.Add(scored(36, 0), "")
	}
	unconfirmed := scored(30, 90)
	unconfirmed.Signals.Device.Confirmed = false
	c.Add(unconfirmed, "")
	got, err := c.Suggest(.2)
	want := replay.Suggestion{
		OfHistory: true, Bounds: trust.Bounds{Full: 84, Limited: 94, Unverified: 98},
		Legitimate: replay.Outcome{"legit", 106, 21, 5, 1}, Present: replay.Outcome{"legit", 106, 53, 42, 32},
		Unconfirmed: 1,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	silent := calibration(replay.Both)
	v := scored(30, 0)
	v.History.Silence = history.SilentPerson
	silent.Add(v, "")
	if s, err := silent.Suggest(.2); !s.Silent || s.Bounds != authtest.HistoryBounds() || err != nil {
		t.Errorf("a silent history: %+v, %v", s, err)
	}
	if got, err = c.Suggest(.04); got.Bounds.Full != risk.MaxScore || err != nil {
		t.Errorf("where the points alone challenge more: %+v, %v", got, err)
	}
}

// TestSuggestedShare checks that the share of challenged sign-ins is at most the target, and that a
// lower bound would exceed it.
func TestSuggestedShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOfN(rapid.IntRange(0, 100), 1, 50).Draw(t, "scores")
		target := rapid.Float64Range(.01, .99).Draw(t, "target")
		c := calibration(replay.Points)
		above := func(bound int) (n float64) {
			for _, s := range scores {
				if s > bound {
					n++
				}
			}
			return n / float64(len(scores))
		}
		for _, s := range scores {
			c.Add(scored(s, 0), "")
		}
		got, err := c.Suggest(target)
		if err != nil || got.Bounds.Validate() != nil {
			t.Fatalf("%+v, %v", got, err)
		}
		if b := got.Bounds.Full; above(b) > target || b > 0 && above(b-1) <= target ||
			above(b) != challengedShare(got.Legitimate) {
			t.Fatalf("bound %d challenges %v", b, above(b))
		}
	})
}

// challengedShare returns the share of the sign-ins that are challenged.
func challengedShare(o replay.Outcome) float64 {
	return float64(o.Challenged) / float64(max(o.SignIns, 1))
}
