package history

import (
	"math"
	"strconv"
	"time"
)

// scorer scores one observation.
type scorer struct {
	o             *Observation
	c             Counts
	now           time.Time
	total         float64 // sign-ins of the person
	totalEveryone float64
	known         float64 // sign-ins that were learnt from the person, not decayed
}

func newScorer(o *Observation, c Counts) *scorer {
	return &scorer{
		o: o, c: c, now: o.at, total: c.person(Recent, "", o.at), totalEveryone: c.everyone(Recent, "", o.at),
		known: flat(c.Person[Value{Feature: SignIns}], o.at),
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
	return min(max((s.c.person(Novel, f.key(), s.now)+noveltyPrior*s.usualNovelty(f))/(s.total+noveltyPrior),
		minNovelty), maxNovelty)
}

// usualNovelty returns the share of everybody's sign-ins that show a new value of a feature: of
// those after as few sign-ins as are known of this person. Most people show their second device and
// network within their first sign-ins, so that what is new then is no surprise. While there are few
// sign-ins of such beginners, those of experienced people are the prior.
func (s *scorer) usualNovelty(f Feature) float64 {
	share := (s.c.everyone(Novel, f.key(), s.now) + assumedNovelty*assumedPrior) /
		(s.c.everyone(Experienced, "", s.now) + assumedPrior)
	if s.known >= Experience {
		return share
	}
	n := stage(s.known)
	early := s.c.everyone(EarlyNovel, n+"|"+f.key(), s.now)
	return max(share, (early+share*assumedPrior)/(s.c.everyone(Beginners, n, s.now)+assumedPrior))
}

// stage returns the Beginners value of a number of sign-ins.
func stage(known float64) string { return strconv.Itoa(int(known)) }

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
