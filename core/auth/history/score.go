package history

import (
	"math"
	"time"
)

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

// Result is the result of scoring.
type Result struct {
	Silence Silence
	Score   float64 // 0 to MaxScore; 0 if it is silent
	Parts   []Part  // in a stable order; empty if it is silent
}

// Part is what one group of correlated features adds to the score.
type Part struct {
	Feature  Feature // the finest of the group
	Value    string  // in words, for example "Firefox on Windows"
	Person   float64 // the probability of the value for this person
	Everyone float64 // the probability of the value for everybody
	Known    bool    // the person has shown the value before
	Points   float64 // negative if the value is more usual for the person than for others
}

// Score returns the score of an observation. The counts must contain at least those that the
// observation lists. The score is higher if the values of the sign-in are more usual for everybody
// than for the person (contract A-57).
func Score(o Observation, c Counts) Result {
	person, everyone := c.Learnt(o.at)
	switch {
	case everyone < MinInstallation:
		return Result{Silence: SilentInstallation}
	case person < MinPerson:
		return Result{Silence: SilentPerson}
	}
	s := scorer{o: o, c: c, now: o.at}
	r := Result{Parts: []Part{s.place(), s.deviceUsed()}}
	evidence := 0.0
	for i := range r.Parts {
		evidence += r.Parts[i].Points
	}
	r.Score = squash(evidence)
	return r
}

// Combine returns the final score of a sign-in: that of the points, or that of the history if it is
// higher (contract A-57). It never lowers the points.
func Combine(points int, r Result) int {
	if r.Silence != Heard {
		return points
	}
	return max(points, min(int(math.Round(r.Score)), MaxScore))
}

// squash returns a score for evidence, which is a logarithm: 50 for none, near 0 or MaxScore for
// much.
func squash(evidence float64) float64 { return MaxScore / (1 + math.Exp(-evidence/2)) }

// scorer scores one observation.
type scorer struct {
	o   Observation
	c   Counts
	now time.Time
}

// level is one level of a hierarchy, with the feature that counts how many values there were.
type level struct {
	value    Value
	distinct float64
}

// compare returns the part of a hierarchy, from coarse to fine. Each level of the person backs off
// to the coarser one by Witten and Bell: the more different values a person has shown, the less a
// new one surprises.
func (s *scorer) compare(name string, levels ...level) Part {
	person, everyone := 1.0, 1.0
	total, all := s.c.Person[Value{Feature: Recent}].Weight(s.now), s.c.Everyone[Value{Feature: Recent}].Weight(s.now)
	for _, l := range levels {
		share := min((s.c.Everyone[l.value].Weight(s.now)+.5)/(all+1), everyone)
		seen := min(s.c.Person[l.value].Weight(s.now), total)
		person = (seen + l.distinct*person*share/everyone) / (total + l.distinct)
		everyone = share
	}
	finest := levels[len(levels)-1].value
	return Part{
		Feature: finest.Feature, Value: name, Person: person, Everyone: everyone,
		Known: s.c.Person[finest].Seen(s.now), Points: math.Log(everyone / person),
	}
}

func (s *scorer) place() Part {
	networks := max(1, s.c.Person[Value{Feature: NewNetwork}].Weight(s.now))
	return s.compare(s.o.network, level{Value{Country, s.o.country}, 1}, level{Value{Network, s.o.network}, networks})
}

func (s *scorer) deviceUsed() Part {
	devices := max(1, s.c.Person[Value{Feature: NewDevice}].Weight(s.now))
	return s.compare(s.o.device, level{Value{System, s.o.system}, 1}, level{Value{Device, s.o.device}, devices})
}
