package replay

import (
	"maps"
	"math"
	"slices"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// LegitimateLabel is the label of sign-ins by the person, like a missing label. Any other label is
// the name of a class of attacks.
const LegitimateLabel = "legit"

// Calibration collects the scores of sign-ins with the right password, to suggest bounds. The zero
// value is empty.
type Calibration struct {
	classes map[string]*[risk.MaxScore + 1]int // the number of sign-ins by score, by label
}

// Add adds the score of a sign-in.
func (c *Calibration) Add(score float64, label string) {
	if label == "" {
		label = LegitimateLabel
	}
	if c.classes == nil {
		c.classes = map[string]*[risk.MaxScore + 1]int{}
	}
	if c.classes[label] == nil {
		c.classes[label] = new([risk.MaxScore + 1]int)
	}
	c.classes[label][min(max(int(math.Round(score)), 0), risk.MaxScore)]++
}

// Suggestion is bounds with what they would have done.
type Suggestion struct {
	Bounds     trust.Bounds
	Legitimate Outcome   // of the sign-ins by the people
	Attacks    []Outcome // of each class of attacks, by name
	Present    Outcome   // of the sign-ins by the people, with the bounds of the service
}

// Outcome is what bounds do to the sign-ins of one label.
type Outcome struct {
	Label      string
	SignIns    int
	Challenged int // those above the bound of FULL_TRUST
	Unverified int // those above the bound of LIMITED_TRUST
	HighRisk   int // those above the bound of UNVERIFIED
}

// The shares of the challenged sign-ins that may be above the other bounds.
const (
	unverifiedShare = .25
	highRiskShare   = .05
)

// Suggest returns the lowest bounds that challenge at most the target share of the legitimate
// sign-ins. Of these, the other bounds put at most a quarter and a twentieth at UNVERIFIED and at
// HIGH_RISK. Present are the bounds of the service. It returns fault.Invalid if there are no legitimate sign-ins, or the target is not
// between 0 and 1.
func (c *Calibration) Suggest(target float64, present trust.Bounds) (Suggestion, error) {
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
	s := Suggestion{Bounds: trust.Bounds{
		Full: lowestBound(legitimate, target), Limited: lowestBound(legitimate, target*unverifiedShare),
		Unverified: lowestBound(legitimate, target*highRiskShare),
	}, Present: newOutcome(LegitimateLabel, legitimate, present)}
	for _, label := range slices.Sorted(maps.Keys(c.classes)) {
		o := newOutcome(label, c.classes[label], s.Bounds)
		if label == LegitimateLabel {
			s.Legitimate = o
		} else {
			s.Attacks = append(s.Attacks, o)
		}
	}
	return s, nil
}

// lowestBound returns the lowest score above which there is at most a share of the sign-ins.
func lowestBound(scores *[risk.MaxScore + 1]int, share float64) int {
	all, above := 0, 0
	for _, n := range scores {
		all += n
	}
	for bound := risk.MaxScore; bound > 0; bound-- {
		if above += scores[bound]; float64(above) > share*float64(all) {
			return bound
		}
	}
	return 0
}

func newOutcome(label string, scores *[risk.MaxScore + 1]int, b trust.Bounds) Outcome {
	o := Outcome{Label: label}
	for score, n := range scores {
		o.SignIns += n
		if score > b.Full {
			o.Challenged += n
		}
		if score > b.Limited {
			o.Unverified += n
		}
		if score > b.Unverified {
			o.HighRisk += n
		}
	}
	return o
}
