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
var gaps = []timeClass{{12 * time.Hour, "12h"}, {2 * oneDay, "2d"}, {6 * oneDay, "6d"}, {20 * oneDay, "20d"}, {math.MaxInt64, "more"}}

// pauses are the classes of the time between two sign-ins.
var pauses = []timeClass{
	{10 * time.Minute, "10m"}, {time.Hour, "1h"}, {6 * time.Hour, "6h"}, {14 * time.Hour, "14h"}, {34 * time.Hour, "34h"},
	{4 * oneDay, "4d"}, {10 * oneDay, "10d"}, {40 * oneDay, "40d"}, {math.MaxInt64, "more"},
}

// classOf returns the name of the class that contains a time.
func classOf(classes []timeClass, d time.Duration) string {
	for _, c := range classes {
		if d < c.below {
			return c.name
		}
	}
	return classes[len(classes)-1].name
}

// pauseBefore returns the class of the time since the person's last sign-in, or the empty text if
// there is none.
func (c Counts) pauseBefore(now time.Time) string {
	last := c.Person[Value{Feature: SignIns}].Last
	if last.IsZero() {
		return ""
	}
	return classOf(pauses, now.Sub(last))
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
func (c Counts) gapOf(v Value, now time.Time) string { return classOf(gaps, now.Sub(c.Person[v].Last)) }

// The changes of an Upgrade.
const (
	sameVersion  = "same"
	newerVersion = "newer"
	olderVersion = "older"
)

// upgradeText returns the text of an Upgrade.
func upgradeText(screenKnown bool, gap, change string) string {
	if screenKnown {
		return "device|" + gap + "|" + change
	}
	return "browser|" + gap + "|" + change
}

// upgrade returns what happened to the version of the browser since it was last seen, on this screen
// if that is known. It returns false for a browser that the person has not used.
func (o *Observation) upgrade(c Counts) (screenKnown bool, gap, change string, ok bool) {
	v := Value{Device, o.device}
	screenKnown = c.Person[v].Seen(o.at)
	if !screenKnown {
		v = Value{Browser, o.browser}
	}
	known := c.Person[v]
	if !known.Seen(o.at) || known.Version == 0 || o.version == 0 {
		return false, "", "", false
	}
	change = sameVersion
	switch {
	case o.version > known.Version:
		change = newerVersion
	case o.version < known.Version:
		change = olderVersion
	}
	return screenKnown, c.gapOf(v, o.at), change, true
}
