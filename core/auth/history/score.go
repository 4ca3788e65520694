package history

import "math"

// MaxScore is the greatest score.
const MaxScore = 100

// Silence is the reason why there is no score.
type Silence uint8

// The reasons.
const (
	Heard              Silence = iota // there is a score
	SilentInstallation                // fewer than MinInstallation sign-ins were learnt from everybody
	SilentPerson                      // fewer than MinPerson sign-ins were learnt from the person
)

// String returns the reason in audit events; it is empty if there is a score.
func (s Silence) String() string {
	switch s {
	case SilentInstallation:
		return "installation"
	case SilentPerson:
		return "person"
	}
	return ""
}

// Result is the result of scoring.
type Result struct {
	Silence Silence
	Score   float64 // 0 to MaxScore; 0 if it is silent
	Parts   []Part  // in a stable order; empty if it is silent
}

// Part is what one group of correlated features adds to the score.
type Part struct {
	Feature  Feature // the one that decides the group
	Value    string  // in words, for example "Firefox on Windows"; may be empty
	Person   float64 // the probability of the value, or of a new value, for this person
	Everyone float64 // the probability of the value for everybody
	Known    bool    // the person has shown the value before
	Points   float64 // negative if the sign-in is more usual for the person than for others
}

// Score returns the score of an observation. The counts must contain at least those of the values
// that the observation lists. The score is higher if the values of the sign-in are more usual for
// everybody than for the person (contract A-57).
func Score(o Observation, c Counts) Result {
	person, everyone := c.Learnt(o.at)
	switch {
	case everyone < MinInstallation:
		return Result{Silence: SilentInstallation}
	case person < MinPerson:
		return Result{Silence: SilentPerson}
	}
	s := newScorer(&o, c)
	r := Result{Parts: make([]Part, 0, 8)}
	for _, part := range [...]func() (Part, bool){
		s.network, s.address, s.device, s.browserVersion, s.language, s.timezone, s.reputation,
	} {
		if p, ok := part(); ok {
			r.Parts = append(r.Parts, p)
		}
	}
	r.Score = SumParts(r.Parts)
	return r
}

// SumParts returns the score of parts. With some of them left out, it is the score without these
// features.
func SumParts(parts []Part) float64 {
	points := basePoints
	for i := range parts {
		points += parts[i].Points
	}
	return limit(points)
}

// Rounded returns the score as a whole number; it is 0 if there is none.
func (r Result) Rounded() int { return int(math.Round(r.Score)) }

// Combine returns the final score of a sign-in: that of the points, or that of the history if it is
// higher (contract A-57). It never lowers the points.
func Combine(points int, r Result) int { return max(points, r.Rounded()) }

// The scale of Ranking for sign-ins about which the history is silent.
const (
	unknownScore = 43.0 // of a sign-in of which nothing is known
	noPoints     = 16.0 // the score of the history that no points are worth
	pointsWeight = 1.3  // what a point is worth in it
)

// Ranking returns a score that puts sign-ins in order, also those about which the history is
// silent. These are ordered by their points, but not below a sign-in of which nothing is known,
// because no evidence is worse than good evidence. Ranking decides nothing; Combine does.
func Ranking(points int, r Result) float64 {
	if r.Silence != Heard {
		return min(max(noPoints+float64(points)*pointsWeight, unknownScore), MaxScore)
	}
	return r.Score
}

// The scale of the score. Points are proportional to the logarithm of a likelihood ratio, and their
// sum is the score up to the knee; above it, the score nears MaxScore, so that it still ranks.
// Balanced evidence is in the middle: with it the history has a higher score than the points of a
// confirmed device, so that these do not hide what it says of most sign-ins.
const (
	pointsPerNat = 4.0
	basePoints   = 50.0
	knee         = 80.0
)

// UsualScore is the score up to which a sign-in is that of the person, and not only not suspicious.
const UsualScore = 36.0

// limit returns the score of a sum of points.
func limit(points float64) float64 {
	if points <= knee {
		return max(points, 0)
	}
	return MaxScore - (MaxScore-knee)*math.Exp(-(points-knee)/40)
}

// pointsOf returns the points of a likelihood ratio, with a weight for features that are correlated
// with others.
func pointsOf(ratio, weight float64) float64 { return pointsPerNat * weight * math.Log(ratio) }
