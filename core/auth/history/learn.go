package history

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
)

// Addition is what is added to the counts of a value after a sign-in.
type Addition struct {
	Value    Value
	Person   bool    // add to the counts of the person
	Everyone bool    // add to the counts of everybody
	Weight   float64 // positive
	Newest   uint32  // the version that was seen; 0 if the value has none
}

// countEvery is the time for which a value that was counted for a person is not counted again
// (contract A-58).
const countEvery = 6 * time.Hour

// MayLearn reports whether history is learnt from a session when it begins. It is learnt from fewer
// sessions than the usual countries of package risk: a password and copied fields of a device reach
// LIMITED_TRUST, and must not become familiar. So a session below FULL_TRUST also needs a device
// that shows its token (contract A-58). Other sessions are learnt from when they pass a step-up.
func MayLearn(level auth.TrustLevel, d trust.Device, binding trust.Binding) bool {
	switch {
	case level.Admits(auth.FullTrust):
		return true
	case level.Admits(auth.LimitedTrust):
		return d.Confirmed && d.Proven && binding != trust.BindingOff
	}
	return false
}

// Learn returns what to add to the counts after a sign-in from which history is learnt, in a stable
// order. The counts are those that the sign-in was scored with. All of them are added at the time of
// the sign-in, even if the session passes its step-up later.
func Learn(o Observation, c Counts) []Addition {
	l := learner{o: o, c: c, weight: Growth(o.at)}
	l.learnTotals()
	if o.network != "" {
		l.learnPlaces()
	}
	l.learnDevice()
	l.add(Hour, o.hour, true)
	if pause := c.pauseBefore(o.at); pause != "" {
		l.add(Pause, pause, true)
	}
	return l.additions
}

// learner collects additions.
type learner struct {
	o         Observation
	c         Counts
	weight    float64
	additions []Addition
}

// isNew reports whether the person has never shown the value.
func (l *learner) isNew(f Feature, text string) bool {
	return !l.c.Person[Value{f, text}].Seen(l.o.at)
}

// add adds a value of the person, and of everybody if so stated, unless it was counted a short time
// ago.
func (l *learner) add(f Feature, text string, everyone bool) {
	v := Value{f, text}
	last := l.c.Person[v].Last
	if passed := l.o.at.Sub(last); !last.IsZero() && passed >= 0 && passed < countEvery {
		return
	}
	a := Addition{Value: v, Person: true, Everyone: everyone, Weight: l.weight}
	switch f {
	case SignIns:
		a.Weight = 1
	case Browser, Device:
		a.Newest = l.o.version
	}
	l.additions = append(l.additions, a)
}

// addForEveryone adds a value to the counts of everybody only.
func (l *learner) addForEveryone(f Feature, text string, weight float64) {
	l.additions = append(l.additions, Addition{Value: Value{f, text}, Everyone: true, Weight: weight})
}

func (l *learner) learnTotals() {
	if l.isNew(SignIns, "") {
		l.addForEveryone(People, "", 1)
	}
	l.add(SignIns, "", true)
	l.add(Recent, "", true)
}

func (l *learner) learnPlaces() {
	o := &l.o
	if l.isNew(Address, o.address) {
		l.add(NewAddress, o.network, false)
	}
	if l.isNew(Network, o.network) {
		l.add(NewNetwork, "", false)
	}
	l.add(Address, o.address, false)
	l.add(Prefix, o.prefix, true)
	l.add(Network, o.network, true)
	if o.provider != "" {
		l.add(Provider, o.provider, true)
	}
	if o.country != "" {
		l.add(Country, o.country, true)
	}
	l.add(NetworkDevice, o.network+"|"+o.device, false)
}

func (l *learner) learnDevice() {
	o := &l.o
	if l.isNew(Device, o.device) {
		l.add(NewDevice, "", false)
	}
	l.add(Device, o.device, true)
	l.add(Browser, o.browser, true)
	l.add(System, o.system, true)
	l.add(DeviceClass, o.class, true)
	l.add(BrowserVersion, o.browserVersion, true)
	l.add(Screen, o.screen, true)
	l.add(Timezone, o.timezone, true)
	l.add(Language, o.language, true)
}
