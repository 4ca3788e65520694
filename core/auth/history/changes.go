package history

import (
	"math"
	"strconv"
	"time"
)

// hierarchies are the features whose new values are counted as Novel, each from coarse to fine.
var hierarchies = [...]Feature{Country, Provider, Network, System, Browser, Device, Timezone, Language}

// key returns the text of the Novel value of a feature.
func (f Feature) key() string { return strconv.Itoa(int(f)) }

// timeClass is a class of times by its upper bound.
type timeClass struct {
	below time.Duration
	name  string
}

const oneDay = 24 * time.Hour

// gaps are the classes of the time since something was last seen.
var gaps = []timeClass{
	{12 * time.Hour, "12h"}, {2 * oneDay, "2d"}, {6 * oneDay, "6d"}, {20 * oneDay, "20d"}, {math.MaxInt64, "more"},
}

// The outcomes of a Return, as the ends of its values.
const (
	same = "|same" // a known address
	near = "|near" // a new address of a known prefix
	far  = "|far"  // another one
)

// outcome returns how the person returns to a known network.
func (o *Observation) outcome(c Counts) string {
	switch {
	case c.Person[Value{Address, o.address}].Seen(o.at):
		return same
	case c.Person[Value{Prefix, o.prefix}].Seen(o.at):
		return near
	}
	return far
}

// gapOf returns the class of the time since the person has shown a value.
func (c Counts) gapOf(v Value, now time.Time) timeClass {
	passed := now.Sub(c.Person[v].Last)
	for _, g := range gaps {
		if passed < g.below {
			return g
		}
	}
	return gaps[len(gaps)-1]
}

// The changes of an Upgrade.
const (
	sameVersion  = "same"
	newerVersion = "newer"
	olderVersion = "older"
)

// upgrade is what happened to the version of a browser since it was last seen.
type upgrade struct {
	screenKnown bool // it was last seen on the same screen
	gap         timeClass
	change      string
}

func (u upgrade) text() string {
	if u.screenKnown {
		return "device|" + u.gap.name + "|" + u.change
	}
	return "browser|" + u.gap.name + "|" + u.change
}

// findUpgrade returns what happened to the version of the browser since it was last seen, on this
// screen if that is known. It returns false for a browser that the person has not used.
func (o *Observation) findUpgrade(c Counts) (upgrade, bool) {
	v := Value{Device, o.device}
	u := upgrade{screenKnown: c.Person[v].Seen(o.at), change: sameVersion}
	if !u.screenKnown {
		v = Value{Browser, o.browser}
	}
	known := c.Person[v]
	if !known.Seen(o.at) || known.Version == 0 || o.version == 0 {
		return upgrade{}, false
	}
	switch {
	case o.version > known.Version:
		u.change = newerVersion
	case o.version < known.Version:
		u.change = olderVersion
	}
	u.gap = c.gapOf(v, o.at)
	return u, true
}
