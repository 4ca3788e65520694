// Package trustlevel has the trust levels, for all of the core: how far a caller is trusted. Package
// auth gives them to sessions.
package trustlevel

import "github.com/tollgate-dev/tollgate/core/fault"

// Level is how far a session is trusted. Levels are ordered: a greater one admits all that a lesser
// one does.
type Level uint8

// The trust levels, lowest first (contract A-6). The zero value is no level and admits nothing.
const (
	HighRisk Level = iota + 1
	Unverified
	LimitedTrust
	FullTrust
)

var names = [...]string{"", "HIGH_RISK", "UNVERIFIED", "LIMITED_TRUST", "FULL_TRUST"}

// String returns the level's name as the API writes it.
func (l Level) String() string {
	if int(l) < len(names) {
		return names[l]
	}
	return ""
}

// All returns all levels, lowest first.
func All() []Level { return []Level{HighRisk, Unverified, LimitedTrust, FullTrust} }

// Names returns the names of all levels, lowest first.
func Names() []string { return names[1:] }

// Admits reports whether a session at l may perform operations that require the level required.
func (l Level) Admits(required Level) bool { return l != 0 && l >= required }

// Parse returns the level of a name as the API writes it, or fault.Invalid.
func Parse(name string) (Level, error) {
	for _, l := range All() {
		if l.String() == name {
			return l, nil
		}
	}
	return 0, fault.Newf(fault.Invalid, "unknown trust level %.60q", name)
}
