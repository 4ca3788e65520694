package history

import "time"

// Addition is what is added to the counts of a value after a sign-in.
type Addition struct {
	Value    Value
	Person   bool    // add to the counts of the person
	Everyone bool    // add to the counts of everybody
	Weight   float64 // positive
	Version  uint32  // the version that was seen; otherwise 0
}

// countEvery is the time for which a value that was counted for a person is not counted again
// (contract A-58).
const countEvery = 6 * time.Hour

// Learn returns what to add to the counts after a sign-in from which history is learnt, in a stable
// order. The counts are those that the sign-in was scored with. All of them are added at the time
// of the sign-in, even if the session passes its step-up later.
func Learn(o Observation, c Counts) []Addition {
	l := learner{o: &o, c: c, weight: Growth(o.at)}
	l.learnTotals()
	if o.network != "" {
		l.learnPlaces()
	}
	l.learnDevice()
	return l.additions
}

// learner collects additions.
type learner struct {
	o         *Observation
	c         Counts
	weight    float64
	additions []Addition
}

// counted reports whether the value was counted for the person a short time ago.
func (l *learner) counted(v Value) bool {
	last := l.c.Person[v].Last
	passed := l.o.at.Sub(last)
	return !last.IsZero() && passed >= 0 && passed < countEvery
}

// add adds a value of the person, and of everybody if so stated, unless it was counted a short time
// ago.
func (l *learner) add(f Feature, text string, everyone bool) {
	v := Value{f, text}
	if l.counted(v) {
		return
	}
	a := Addition{Value: v, Person: true, Everyone: everyone, Weight: l.weight}
	switch f {
	case SignIns:
		a.Weight = 1
	case Browser, Device:
		a.Version = l.o.version
	}
	l.additions = append(l.additions, a)
}

// addForEveryone adds a value to the counts of everybody only.
func (l *learner) addForEveryone(f Feature, text string, weight float64) {
	l.additions = append(l.additions, Addition{Value: Value{f, text}, Everyone: true, Weight: weight})
}

// addNovel adds a value of a feature that has Novel counts. The first sign-in of a person is not
// novel: everything is new then.
func (l *learner) addNovel(f Feature, text string) {
	sum := flat(l.c.Person[Value{Feature: SignIns}], l.o.at)
	if sum > 0 && !l.c.Person[Value{f, text}].Seen(l.o.at) {
		l.add(Novel, f.key(), sum >= Experience)
		if sum < Experience {
			l.addForEveryone(EarlyNovel, stage(sum)+"|"+f.key(), l.weight)
		}
	}
	l.add(f, text, true)
}

func (l *learner) learnTotals() {
	sum := flat(l.c.Person[Value{Feature: SignIns}], l.o.at)
	switch {
	case sum == 0:
		l.addForEveryone(People, "", 1)
	case sum < Experience:
		l.addForEveryone(Beginners, stage(sum), l.weight)
	default:
		l.addForEveryone(Experienced, "", l.weight)
	}
	l.add(SignIns, "", true)
	l.add(Recent, "", true)
}

func (l *learner) learnPlaces() {
	o := l.o
	if l.c.Person[Value{Network, o.network}].Seen(o.at) {
		l.learnReturn()
	}
	if !l.movesAlways() {
		l.add(Address, o.address, false)
		l.add(Prefix, o.prefix, false)
	}
	l.addNovel(Network, o.network)
	if o.provider != "" {
		l.addNovel(Provider, o.provider)
	}
	if o.country != "" {
		l.addNovel(Country, o.country)
		l.addForEveryone(CountryTimezone, o.country+"|"+o.timezone, l.weight)
	}
	if o.hidden {
		l.add(Hidden, "", true)
	}
	l.add(NetworkDevice, o.network+"|"+o.device, false)
}

func (l *learner) learnReturn() {
	o := l.o
	outcome := o.outcome(l.c)
	if outcome != same {
		l.add(Return, o.network+outcome, false)
	}
	gap := "|" + l.c.gapOf(Value{Network, o.network}, o.at).name + outcome
	l.addForEveryone(Return, gap, l.weight)
	l.addForEveryone(Return, o.network+gap, l.weight)
}

// Addresses of a network are not counted for a person who came back to it at least minReturns
// times, and nearly always with another address, as on a mobile network: they would be rows without
// a use.
const (
	minReturns   = 8
	alwaysMoving = .8
)

// movesAlways reports whether the person nearly always has a new address in the network.
func (l *learner) movesAlways() bool {
	o := l.o
	returns := l.c.person(Network, o.network, o.at)
	return returns >= minReturns && l.c.person(Return, o.network+far, o.at) >= alwaysMoving*returns
}

func (l *learner) learnDevice() {
	o := l.o
	if u, ok := o.findUpgrade(l.c); ok {
		l.addForEveryone(Upgrade, u.text(), l.weight)
	}
	l.addNovel(Device, o.device)
	l.addNovel(Browser, o.browser)
	l.addNovel(System, o.system)
	l.addNovel(Timezone, o.timezone)
	l.addNovel(Language, o.language)
}
