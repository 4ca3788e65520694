package history

// device returns the part of the system, the browser and the screen.
func (s *scorer) device() (Part, bool) {
	o := s.o
	return s.hierarchy(anywhere, Value{System, o.system}, Value{Browser, o.browser}, Value{Device, o.device}), true
}

// browserVersion returns the part of the change of the browser's version. A browser that updates
// itself is not a new browser, but one that goes back is unusual.
func (s *scorer) browserVersion() (Part, bool) {
	u, ok := s.o.findUpgrade(s.c)
	if !ok {
		return Part{}, false
	}
	share := attackerUpgrade[u.change]
	for _, classes := range [...][]timeClass{gaps, {u.gap}} { // the share in all classes is the prior in one
		changed, all := s.countUpgrades(u, classes)
		share = (changed + upgradePrior*share) / (all + upgradePrior)
	}
	share = max(share, minNovelty)
	p := Part{
		Feature: Upgrade, Value: changeWords[u.change], Person: share, Everyone: attackerUpgrade[u.change],
		Known: u.change == sameVersion,
	}
	p.Points = pointsOf(p.Everyone/p.Person, weightUpgrade)
	return p, true
}

// countUpgrades returns how many of everybody's sign-ins had the change of u, and how many had any,
// in some classes of times.
func (s *scorer) countUpgrades(u upgrade, classes []timeClass) (changed, all float64) {
	change := u.change
	for _, u.gap = range classes {
		for _, u.change = range [...]string{sameVersion, newerVersion, olderVersion} {
			n := s.c.everyone(Upgrade, u.text(), s.now)
			if all += n; u.change == change {
				changed += n
			}
		}
	}
	return changed, all
}

// weightUpgrade is the weight of the browser's version, which is correlated with the device.
const weightUpgrade = .8

// upgradePrior is the strength, in sign-ins, of the prior that people are like attackers here.
const upgradePrior = 4

// attackerUpgrade is the assumed share of attackers for each change of the version.
var attackerUpgrade = map[string]float64{sameVersion: .55, newerVersion: .15, olderVersion: .3}

func (s *scorer) language() (Part, bool) {
	return s.hierarchy(anywhere, Value{Language, s.o.language}), true
}

// timezone returns the part of the time zone. In a country that is new for the person, the usual
// time zone of the country is no surprise of its own.
func (s *scorer) timezone() (Part, bool) {
	o := s.o
	if o.country != "" && !s.c.Person[Value{Country, o.country}].Seen(s.now) {
		usual := s.c.everyone(CountryTimezone, o.country+"|"+o.timezone,
			s.now) / max(s.c.everyone(Country, o.country, s.now), 1)
		if usual >= .5 {
			return Part{}, false
		}
	}
	return s.hierarchy(anywhere, Value{Timezone, o.timezone}), true
}
