package history

import (
	"math"
	"time"
)

// scorer scores one observation.
type scorer struct {
	o             *Observation
	c             Counts
	now           time.Time
	total         float64 // sign-ins of the person
	totalEveryone float64
	experienced   float64 // sign-ins of everybody that novelty is compared with
}

func newScorer(o *Observation, c Counts) *scorer {
	return &scorer{
		o: o, c: c, now: o.at, total: c.person(Recent, "", o.at), totalEveryone: c.everyone(Recent, "", o.at),
		experienced: c.everyone(Experienced, "", o.at),
	}
}

// The strength of priors, in sign-ins: with fewer sign-ins than that, a person is taken to be like
// everybody, and everybody to be like the assumption.
const (
	noveltyPrior   = 10.0
	assumedNovelty = .05 // of any feature, before an installation has enough sign-ins
	assumedPrior   = 20.0
	minNovelty     = .004 // no value proves alone who signs in
	maxNovelty     = .98
	jointPrior     = 2.0
	returnPrior    = 10.0
)

// novelty returns the probability that the person shows a new value of a feature. It is estimated
// from how often that happened (Witten and Bell), with everybody's share as the prior: people who
// travel or often change devices are not surprising when they do.
func (s *scorer) novelty(f Feature) float64 {
	everyone := (s.c.everyone(Novel, f.key(), s.now) + assumedNovelty*assumedPrior) / (s.experienced + assumedPrior)
	return min(max((s.c.person(Novel, f.key(), s.now)+noveltyPrior*everyone)/(s.total+noveltyPrior),
		minNovelty), maxNovelty)
}

// shareOfEveryone returns the share of a value among the sign-ins of everybody. A value that was
// never seen counts as half a sign-in.
func (s *scorer) shareOfEveryone(f Feature, text string) float64 {
	return min((s.c.everyone(f, text, s.now)+.5)/(s.totalEveryone+1), 1)
}

// shareOfPerson returns the share of a known value among the sign-ins of the person.
func (s *scorer) shareOfPerson(f Feature, text string) float64 {
	return min((s.c.person(f, text, s.now)+.25)/(s.total+.5), 1)
}

// knowledge is the assumed share of attackers who know the person's values of a feature and copy
// them. The others show what everybody shows.
var knowledge = map[Feature]float64{
	Country: .8, Provider: .25, Network: .5, System: .6, Browser: .3, Device: .12, Timezone: .95, Language: .9,
}

// rarity is the weight of how rare a value is that is new for the person. Attackers show what no
// one here shows more often than people do who show something new.
const rarity = .1

// usualShare is the share of everybody's sign-ins at which a new value is not rare.
const usualShare = .05

// newRatio returns the likelihood ratio of a value that is new for the person.
func (s *scorer) newRatio(v Value) float64 {
	share := s.shareOfEveryone(v.Feature, v.Text)
	return (1 - knowledge[v.Feature]) / s.novelty(v.Feature) * math.Pow(max(usualShare/share, 1), rarity)
}

// hierarchy returns the part of the values of one thing, from coarse to fine. If a value is new for
// the person, so are all finer ones, and the most surprising of them counts, once: a new country
// always comes with a new network. If no value is new, the finest value counts; given is its share
// in the context of the sign-in.
func (s *scorer) hierarchy(given func(share float64) float64, levels ...Value) Part {
	for i, v := range levels {
		if s.c.Person[v].Seen(s.now) {
			continue
		}
		ratio := 0.0
		for _, finer := range levels[i:] {
			ratio = max(ratio, s.newRatio(finer))
		}
		return Part{
			Feature: v.Feature, Value: readable(v), Everyone: s.shareOfEveryone(v.Feature, v.Text),
			Person: s.novelty(v.Feature),
			Points: pointsOf(ratio, 1),
		}
	}
	finest := levels[len(levels)-1]
	everyone, share, known := s.shareOfEveryone(finest.Feature, finest.Text),
		s.shareOfPerson(finest.Feature, finest.Text), knowledge[finest.Feature]
	person := (1 - s.novelty(finest.Feature)) * given(share)
	ratio := min((known*share+(1-known)*everyone)/person, s.newRatio(finest))
	return Part{
		Feature: finest.Feature, Value: readable(finest), Known: true, Everyone: everyone, Person: person,
		Points: pointsOf(ratio, 1),
	}
}

// anywhere is the context of values that do not depend on another one.
func anywhere(share float64) float64 { return share }
