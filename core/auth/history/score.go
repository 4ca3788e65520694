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
	points := basePoints
	for _, part := range [...]func() (Part, bool){
		s.network, s.address, s.device, s.browserVersion, s.language, s.timezone, s.reputation, s.pause,
	} {
		if p, ok := part(); ok {
			r.Parts = append(r.Parts, p)
			points += p.Points
		}
	}
	r.Score = limit(points)
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

// The scale of the score. Points are proportional to the logarithm of a likelihood ratio, and their
// sum is the score up to the knee; above it, the score nears MaxScore, so that it still ranks.
const (
	pointsPerNat = 6.0
	basePoints   = 20.0
	knee         = 80.0
)

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
	noveltyPrior   = 4.0
	assumedNovelty = .05 // of any feature, before an installation has enough sign-ins
	assumedPrior   = 20.0
	jointPrior     = 2.0
	returnPrior    = 4.0
	pausePrior     = 3.0
)

// novelty returns the probability that the person shows a new value of a feature. It is estimated
// from how often that happened (Witten and Bell), with everybody's share as the prior: people who
// travel or often change devices are not surprising when they do.
func (s *scorer) novelty(f Feature) float64 {
	everyone := (s.c.everyone(Novel, f.key(), s.now) + assumedNovelty*assumedPrior) / (s.experienced + assumedPrior)
	return min((s.c.person(Novel, f.key(), s.now)+noveltyPrior*everyone)/(s.total+noveltyPrior), .98)
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
	Country: .6, Provider: .5, Network: .4, System: .6, Browser: .5, Device: .2, Timezone: .8, Language: .8,
}

// hierarchy returns the part of the values of one thing, from coarse to fine. The first level that is
// new for the person decides: whoever comes from a new country also comes from a new network. If
// none is new, the finest decides, whose share in the context of the sign-in is given.
func (s *scorer) hierarchy(given float64, levels ...Value) Part {
	var p Part
	for i, v := range levels {
		p = Part{Feature: v.Feature, Value: v.Text, Everyone: s.shareOfEveryone(v.Feature, v.Text), Person: s.novelty(v.Feature)}
		known := knowledge[v.Feature]
		ratio := (1 - known) / p.Person
		if !s.c.Person[v].Seen(s.now) {
			p.Points = pointsOf(ratio, 1)
			return p
		}
		share := s.shareOfPerson(v.Feature, v.Text)
		inContext := share
		if i == len(levels)-1 && given > 0 {
			inContext = given
		}
		p.Known, p.Person = true, (1-p.Person)*inContext
		p.Points = pointsOf(min((known*share+(1-known)*p.Everyone)/p.Person, ratio), 1)
	}
	return p
}

// network returns the part of the country, the provider and the network, which is compared with the
// networks in which the person uses this device.
func (s *scorer) network() (Part, bool) {
	o := s.o
	if o.network == "" {
		return Part{}, false
	}
	levels := make([]Value, 0, 3)
	if o.country != "" {
		levels = append(levels, Value{Country, o.country})
	}
	if o.provider != "" {
		levels = append(levels, Value{Provider, o.provider})
	}
	levels = append(levels, Value{Network, o.network})
	return s.hierarchy(s.networkGivenDevice(), levels...), true
}

// networkGivenDevice returns the share of the network among the person's sign-ins with this device.
func (s *scorer) networkGivenDevice() float64 {
	share, device := s.shareOfPerson(Network, s.o.network), s.c.person(Device, s.o.device, s.now)
	return (s.c.person(NetworkDevice, s.o.network+"|"+s.o.device, s.now) + jointPrior*share) / (device + jointPrior)
}

// address returns the part of the address in a network that the person has used before. How often a
// person has a new one there depends on the network, on the time since the last sign-in from it, and
// on the person.
func (s *scorer) address() (Part, bool) {
	o := s.o
	if o.network == "" || !s.c.Person[Value{Network, o.network}].Seen(s.now) {
		return Part{}, false
	}
	gap := "|" + s.c.gapOf(Value{Network, o.network}, s.now)
	farShare, nearShare := s.returnShare(gap, far), s.returnShare(gap, near)
	p := Part{Feature: Address, Value: o.address}
	var attacker float64
	switch o.outcome(s.c) {
	case same:
		p.Known, p.Person, attacker = true, max(1-farShare-nearShare, .01), attackerSame
	case near:
		p.Person, attacker = nearShare, attackerNear
	default:
		p.Person, attacker = farShare, 1-attackerSame-attackerNear
	}
	p.Everyone = attacker
	p.Points = pointsOf(attacker/p.Person, 1)
	return p, true
}

// The assumed shares of attackers in a person's network who have an address of the person, and one
// next to it.
const (
	attackerSame = .01
	attackerNear = .02
)

// returnShare returns the probability that the person returns to the network with the outcome.
func (s *scorer) returnShare(gap, outcome string) float64 {
	share := s.everyoneReturns("", gap, outcome, 1./3, 2)
	share = s.everyoneReturns(s.o.network, gap, outcome, share, returnPrior)
	returns := s.c.person(Network, s.o.network, s.now)
	own := min(s.c.person(Return, s.o.network+outcome, s.now), returns)
	return max((own+returnPrior*share)/(returns+returnPrior), .001)
}

// everyoneReturns returns the share of an outcome among everybody's returns to a network, or to any
// if the network is empty, with a prior.
func (s *scorer) everyoneReturns(network, gap, outcome string, prior, strength float64) float64 {
	all := 0.0
	for _, o := range [...]string{same, near, far} {
		all += s.c.everyone(Return, network+gap+o, s.now)
	}
	return (s.c.everyone(Return, network+gap+outcome, s.now) + strength*prior) / (all + strength)
}

// device returns the part of the system, the browser and the screen.
func (s *scorer) device() (Part, bool) {
	o := s.o
	p := s.hierarchy(0, Value{System, o.system}, Value{Browser, o.browser}, Value{Device, o.device})
	return p, true
}

// browserVersion returns the part of the change of the browser's version. A browser that updates
// itself is not a new browser, but one that goes back is unusual.
func (s *scorer) browserVersion() (Part, bool) {
	screenKnown, gap, change, ok := s.o.upgrade(s.c)
	if !ok {
		return Part{}, false
	}
	all := 0.0
	for _, other := range [...]string{sameVersion, newerVersion, olderVersion} {
		all += s.c.everyone(Upgrade, upgradeText(screenKnown, gap, other), s.now)
	}
	share := (s.c.everyone(Upgrade, upgradeText(screenKnown, gap, change), s.now) + .5) / (all + 1.5)
	p := Part{Feature: Upgrade, Value: change, Person: share, Everyone: attackerUpgrade[change], Known: change == sameVersion}
	p.Points = pointsOf(p.Everyone/p.Person, weightUpgrade)
	return p, true
}

// attackerUpgrade is the assumed share of attackers for each change of the version.
var attackerUpgrade = map[string]float64{sameVersion: .55, newerVersion: .15, olderVersion: .3}

func (s *scorer) language() (Part, bool) {
	return s.hierarchy(0, Value{Language, s.o.language}), true
}

// timezone returns the part of the time zone. In a country that is new for the person, the usual
// time zone of the country is no surprise of its own.
func (s *scorer) timezone() (Part, bool) {
	o := s.o
	if o.country != "" && !s.c.Person[Value{Country, o.country}].Seen(s.now) {
		usual := s.c.everyone(CountryTimezone, o.country+"|"+o.timezone, s.now) / max(s.c.everyone(Country, o.country, s.now), 1)
		if usual >= .5 {
			return Part{}, false
		}
	}
	return s.hierarchy(0, Value{Timezone, o.timezone}), true
}

// reputation returns the part of an address of a hosting company, a proxy or Tor: people who use a
// VPN show one again and again.
func (s *scorer) reputation() (Part, bool) {
	if !s.o.rated {
		return Part{}, false
	}
	everyone := (s.c.everyone(Hidden, "", s.now) + .5) / (s.totalEveryone + 10)
	person := min((s.c.person(Hidden, "", s.now)+noveltyPrior*everyone)/(s.total+noveltyPrior), .98)
	p := Part{Feature: Hidden, Person: person, Everyone: attackerHidden, Known: s.c.Person[Value{Feature: Hidden}].Seen(s.now)}
	if !s.o.hidden {
		p.Person, p.Everyone, p.Known = 1-person, 1-attackerHidden, true
	}
	p.Points = pointsOf(p.Everyone/p.Person, weightHidden)
	return p, true
}

// attackerHidden is the assumed share of attackers who hide their address.
const attackerHidden = .4

// pause returns the part of the time since the person's last sign-in.
func (s *scorer) pause() (Part, bool) {
	name := s.c.pauseBefore(s.now)
	everyone := s.shareOfEveryone(Pause, name)
	person := (min(s.c.person(Pause, name, s.now), s.total) + pausePrior*everyone) / (s.total + pausePrior)
	return Part{
		Feature: Pause, Value: name, Person: person, Everyone: everyone, Known: s.c.Person[Value{Pause, name}].Seen(s.now),
		Points: pointsOf(everyone/person, weightPause),
	}, true
}

// The weights of parts that are correlated with others.
const (
	weightUpgrade = .8
	weightHidden  = .5
	weightPause   = .3
)
