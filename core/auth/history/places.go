package history

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
	return s.hierarchy(s.withThisDevice, levels...), true
}

// withThisDevice returns the share of the network among the person's sign-ins with this device. The
// prior is its share among all of them.
func (s *scorer) withThisDevice(share float64) float64 {
	joint, device := s.c.person(NetworkDevice, s.o.network+"|"+s.o.device, s.now), s.c.person(Device, s.o.device, s.now)
	return min((joint+jointPrior*share)/(device+jointPrior), 1)
}

// address returns the part of the address in a network that the person has used before. How often a
// person has a new one there depends on the network, on the time since the last sign-in from it,
// and on the person.
func (s *scorer) address() (Part, bool) {
	o := s.o
	if o.network == "" || !s.c.Person[Value{Network, o.network}].Seen(s.now) {
		return Part{}, false
	}
	gap := "|" + s.c.gapOf(Value{Network, o.network}, s.now).name
	farShare, nearShare := s.returnShare(gap, far), s.returnShare(gap, near)
	p := Part{Feature: Address}
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
	attackerSame = .004
	attackerNear = .05
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

// reputation returns the part of an address of a hosting company, a proxy or Tor: people who use a
// VPN show one again and again.
func (s *scorer) reputation() (Part, bool) {
	if !s.o.rated {
		return Part{}, false
	}
	everyone := (s.c.everyone(Hidden, "", s.now) + .5) / (s.totalEveryone + 10)
	person := min(max((s.c.person(Hidden, "", s.now)+noveltyPrior*everyone)/(s.total+noveltyPrior),
		minNovelty), maxNovelty)
	p := Part{
		Feature: Hidden, Value: "hidden", Person: person, Everyone: attackerHidden, Known: s.c.Person[Value{
			Feature: Hidden,
		}].Seen(s.now),
	}
	if !s.o.hidden {
		p.Value, p.Person, p.Everyone, p.Known = "", 1-person, 1-attackerHidden, true
	}
	p.Points = pointsOf(p.Everyone/p.Person, 1)
	return p, true
}

// attackerHidden is the assumed share of attackers who hide their address.
const attackerHidden = .2
