package replay

import (
	"math"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Scorer decides which score the replayed sign-ins get.
type Scorer string

// The scorers.
const (
	Points  Scorer = "points"  // that of package risk
	History Scorer = "history" // that of package history, see history.Ranking
	Both    Scorer = "both"    // the higher one, as history.Combine returns it
)

// ParseScorer returns the scorer of a name, or fault.Invalid if the name is unknown.
func ParseScorer(name string) (Scorer, error) {
	switch s := Scorer(name); s {
	case Points, History, Both:
		return s, nil
	}
	return "", fault.Newf(fault.Invalid, "%q is not points, history or both", name).WithCode(auth.CodeValidation)
}

// readsHistory reports whether the scorer needs the counts of package history.
func (s Scorer) readsHistory() bool { return s == History || s == Both }

// Verdict is the result of an event.
type Verdict struct {
	assessment.Verdict                    // of the scorer; the factors and reasons are those of the points
	Points             int                // the score of the points
	RiskScore          float64            // the score of the scorer; that of History has a fraction
	History            *history.Result    // nil if the scorer is Points
	Learnt             []history.Addition // what was learnt from the event; nil if the scorer is Points
}

// addHistory scores the present event by its history, and sets the score and the level of the
// scorer.
func (r *Replayer) addHistory(v *Verdict, p *personHistory) {
	result := history.Score(r.observe(v), r.counts(p))
	v.History = &result
	v.AddHistory(result, r.config.Assess)
	v.RiskScore = float64(v.Score)
	if r.config.Scorer == History {
		v.RiskScore = history.Ranking(v.Points, result)
		v.Score = int(math.Round(v.RiskScore))
		v.Level = trust.Decide(v.Score, v.Signals.Device, r.config.Assess.HistoryBounds, r.config.Assess.Binding)
	}
}

func (r *Replayer) observe(v *Verdict) history.Observation {
	return history.Observe(r.event.Address, r.event.Device, v.Signals)
}

func (r *Replayer) counts(p *personHistory) history.Counts {
	return history.Counts{Person: p.counts, Everyone: r.everyone}
}

// mayLearn reports whether the history is learnt from the present event although it passed no
// step-up. If the record does not contain whether the device showed its token, somebody who copied
// the device may have signed in. Then the history is learnt only from a sign-in that is usual.
func (r *Replayer) mayLearn(v *Verdict) bool {
	e, config := r.event, r.config.Assess
	switch {
	case !trust.MayLearn(v.Level, v.Signals.Device, config.Binding):
		return false
	case e.DeviceTokenShown == Yes:
		return true
	case e.StepUpPassed == No && !v.Level.Admits(auth.FullTrust):
		return false
	}
	return v.History.Silence != history.Heard || v.History.Score <= history.UsualScore
}

// learn adds the present event to the counts.
func (r *Replayer) learn(p *personHistory, v *Verdict) {
	if p.counts == nil {
		p.counts = history.Table{}
	}
	v.Learnt = history.Learn(r.observe(v), r.counts(p))
	r.counts(p).Apply(v.Learnt, r.event.At)
}
