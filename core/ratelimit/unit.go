package ratelimit

import (
	"strings"
	"time"
)

// Unit is the unit of time of a limit.
type Unit uint8

// The units (contract L-14).
const (
	NoUnit Unit = iota
	Second
	Minute
	Hour
	Day
	Week
	Month // 30 days
	Year  // 365 days
)

const day = 24 * time.Hour

var units = [...]struct {
	name   string
	window time.Duration
}{
	NoUnit: {"unknown", 0},
	Second: {"second", time.Second},
	Minute: {"minute", time.Minute},
	Hour:   {"hour", time.Hour},
	Day:    {"day", day},
	Week:   {"week", 7 * day},
	Month:  {"month", 30 * day},
	Year:   {"year", 365 * day},
}

// ParseUnit returns the unit of a name in any case, or false when there is no unit of that name.
func ParseUnit(name string) (Unit, bool) {
	for u := Second; int(u) < len(units); u++ {
		if strings.EqualFold(units[u].name, name) {
			return u, true
		}
	}
	return NoUnit, false
}

// UnitNames returns the names of all units, the shortest unit first.
func UnitNames() []string {
	names := make([]string, 0, len(units)-1)
	for _, u := range units[Second:] {
		names = append(names, u.name)
	}
	return names
}

// String returns the unit's name in lower case.
func (u Unit) String() string {
	if int(u) < len(units) {
		return units[u].name
	}
	return units[NoUnit].name
}

// Window returns the length of the unit; zero for NoUnit.
func (u Unit) Window() time.Duration {
	if int(u) < len(units) {
		return units[u].window
	}
	return 0
}
