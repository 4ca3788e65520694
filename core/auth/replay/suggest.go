package replay

import (
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// LegitimateLabel is the label of sign-ins by the person, like a missing label. Any other label is
// the name of a class of attacks.
const LegitimateLabel = "legit"

// Calibration collects the scores of sign-ins with the right password, to suggest bounds: of the
// points if that is the scorer, and otherwise of the history. Replayer.Calibration creates one.
type Calibration struct {
	scorer             Scorer
	present            assessment.Config
	classes            map[string]map[scores]int // the number of sign-ins by their scores, by label
	unconfirmed, heard int                       // legitimate sign-ins: on devices that were not confirmed; with a history
}

// scores are the scores of a sign-in that are compared with bounds; 0 if there is none.
type scores struct{ points, history int }

// Calibration returns an empty calibration for the sign-ins that are replayed.
func (r *Replayer) Calibration() *Calibration {
	return &Calibration{scorer: r.config.Scorer, present: r.config.Assess, classes: map[string]map[scores]int{}}
}

// Add adds a sign-in.
func (c *Calibration) Add(v *Verdict, label string) {
	if label == "" {
		label = LegitimateLabel
	}
	if c.classes[label] == nil {
		c.classes[label] = map[scores]int{}
	}
	s := scores{points: v.Points}
	switch c.scorer {
	case Both:
		s = scores{v.Points - v.Factors[risk.DeviceFamiliarity], v.History.Rounded()}
	case History:
		s = scores{history: v.Score}
	}
	c.classes[label][s]++
	if label != LegitimateLabel {
		return
	}
	if !v.Signals.Device.Confirmed {
		c.unconfirmed++
	}
	if v.History != nil && v.History.Silence == history.Heard {
		c.heard++
	}
}

// Suggestion is bounds with what they would have done.
type Suggestion struct {
	OfHistory   bool // the bounds are those of the history; otherwise of the points
	Silent      bool // they are, and the history is silent about all legitimate sign-ins
	Bounds      trust.Bounds
	Legitimate  Outcome   // of the sign-ins by the people
	Attacks     []Outcome // of each class of attacks, by name
	Present     Outcome   // of the sign-ins by the people, with the bounds of the service
	Unconfirmed int       // sign-ins by the people on devices that were not confirmed
}

// Outcome is what bounds do to the sign-ins of one label. Where the history judges the device, its
// points do not count: the level of a device that is not trusted has a cap at any score.
type Outcome struct {
	Label      string
	SignIns    int
	Challenged int // those above a bound of FULL_TRUST
	Unverified int // those above a bound of LIMITED_TRUST
	HighRisk   int // those above a bound of UNVERIFIED
}

// The shares of the challenged sign-ins that may be above the other bounds.
const (
	unverifiedShare = .25
	highRiskShare   = .05
)

// Suggest returns the lowest bounds that challenge at most the target share of the legitimate
// sign-ins. Of these, the other bounds put at most a quarter and a twentieth at UNVERIFIED and at
// HIGH_RISK. If the history is silent about all of them, they are those of the service. It returns
// fault.Invalid if there are no legitimate sign-ins, or the target is not between 0 and 1.
func (c *Calibration) Suggest(target float64) (Suggestion, error) {
	legitimate := c.classes[LegitimateLabel]
	switch {
	case !(target > 0 && target < 1):
		return Suggestion{}, fault.Newf(fault.Invalid, "%v is not between 0 and 1", target).
			WithCode(auth.CodeValidation)
	case legitimate == nil:
		return Suggestion{}, fault.New(fault.Invalid,
			"there are no sign-ins with the right password that are legitimate").
			WithCode(auth.CodeValidation)
	}
	s := Suggestion{
		OfHistory: c.scorer != Points, Silent: c.scorer != Points && c.heard == 0, Unconfirmed: c.unconfirmed,
		Present: newOutcome(LegitimateLabel, legitimate, c.present),
	}
	lowest := func(share float64, above func(Outcome) int) int {
		for bound := risk.MaxScore; bound > 0; bound-- {
			o := newOutcome("", legitimate, c.with(trust.Bounds{Full: bound - 1, Limited: bound - 1, Unverified: bound - 1}))
			if float64(above(o)) > share*float64(o.SignIns) {
				return bound
			}
		}
		return 0
	}
	s.Bounds = trust.Bounds{
		Full:       lowest(target, func(o Outcome) int { return o.Challenged }),
		Limited:    lowest(target*unverifiedShare, func(o Outcome) int { return o.Unverified }),
		Unverified: lowest(target*highRiskShare, func(o Outcome) int { return o.HighRisk }),
	}
	if s.Silent {
		s.Bounds = c.present.HistoryBounds
	}
	for _, label := range slices.Sorted(maps.Keys(c.classes)) {
		o := newOutcome(label, c.classes[label], c.with(s.Bounds))
		if label == LegitimateLabel {
			s.Legitimate = o
		} else {
			s.Attacks = append(s.Attacks, o)
		}
	}
	return s, nil
}

// with returns the present bounds with suggested ones in their place.
func (c *Calibration) with(b trust.Bounds) assessment.Config {
	bounds := c.present
	if c.scorer == Points {
		bounds.Bounds = b
	} else {
		bounds.HistoryBounds = b
	}
	return bounds
}

func newOutcome(label string, signIns map[scores]int, c assessment.Config) Outcome {
	o, points, of := Outcome{Label: label}, c.Bounds, c.HistoryBounds
	for s, n := range signIns {
		o.SignIns += n
		if s.points > points.Full || s.history > of.Full {
			o.Challenged += n
		}
		if s.points > points.Limited || s.history > of.Limited {
			o.Unverified += n
		}
		if s.points > points.Unverified || s.history > of.Unverified {
			o.HighRisk += n
		}
	}
	return o
}
