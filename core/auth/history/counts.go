package history

import (
	"math"
	"time"
)

// The decay of counts (contract A-58).
const (
	// HalfLife is the time after which a sign-in counts half.
	HalfLife = 90 * 24 * time.Hour
	// Lifetime is the time after which a value that was not seen again counts nothing. A store
	// deletes its count.
	Lifetime = 180 * 24 * time.Hour
)

// landmark is the time at which a sign-in has weight 1. It is part of the storage format.
var landmark = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// Growth returns the weight of a sign-in in a Sum. Weights grow with the time of the sign-in
// instead of shrinking with its age, so that a store only has to add them: in any order, from any
// instance, and without reading. They double in a HalfLife, and a float64 holds them for 250 years.
func Growth(at time.Time) float64 {
	return math.Exp2(at.Sub(landmark).Hours() / HalfLife.Hours())
}

// Count is how often a value was seen. The zero value means never.
type Count struct {
	Sum     float64   // of the weights of the Additions
	Last    time.Time // when the value was last added
	Version uint32    // that of the latest Addition; otherwise 0
}

// Seen reports whether the value was seen within the Lifetime before now.
func (c Count) Seen(now time.Time) bool { return c.Sum > 0 && now.Sub(c.Last) < Lifetime }

// Weight returns how often the value was seen, decayed to now.
func (c Count) Weight(now time.Time) float64 {
	if !c.Seen(now) {
		return 0
	}
	return c.Sum / Growth(now)
}

// Plus returns the count after an addition at a time. Additions may be applied in any order.
func (c Count) Plus(a Addition, at time.Time) Count {
	switch {
	case at.After(c.Last):
		c.Last, c.Version = at, a.Version
	case at.Equal(c.Last):
		c.Version = max(c.Version, a.Version)
	}
	c.Sum += a.Weight
	return c
}

// Table has the counts of values. A value that it does not have was never seen.
type Table map[Value]Count

// Counts are the counts that the score of a sign-in needs.
type Counts struct {
	Person   Table // of the person who signs in
	Everyone Table // of all people of the installation
}

// The numbers of sign-ins below which the score is silent (contract A-59).
const (
	MinInstallation = 500
	MinPerson       = 1
)

// Experience is the number of sign-ins below which a person is a beginner: what is new for the
// person is compared with what was new for everybody after as few sign-ins.
const Experience = 5

// Learnt returns the number of sign-ins that were learnt from the person and from everybody. They
// do not decay, but end with the Lifetime.
func (c Counts) Learnt(now time.Time) (person, everyone float64) {
	return flat(c.Person[Value{Feature: SignIns}], now), flat(c.Everyone[Value{Feature: SignIns}], now)
}

// flat returns the sum of a count that does not decay.
func flat(c Count, now time.Time) float64 {
	if !c.Seen(now) {
		return 0
	}
	return c.Sum
}

// person returns how often the person has shown a value, decayed to now.
func (c Counts) person(f Feature, text string, now time.Time) float64 {
	return c.Person[Value{f, text}].Weight(now)
}

// everyone returns how often anybody has shown a value, decayed to now.
func (c Counts) everyone(f Feature, text string, now time.Time) float64 {
	return c.Everyone[Value{f, text}].Weight(now)
}

// Apply adds additions to the tables, as a store does.
func (c Counts) Apply(additions []Addition, at time.Time) {
	for _, a := range additions {
		if a.Person {
			c.Person[a.Value] = c.Person[a.Value].Plus(a, at)
		}
		if a.Everyone {
			c.Everyone[a.Value] = c.Everyone[a.Value].Plus(a, at)
		}
	}
}
