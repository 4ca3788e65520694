package auth

import "github.com/tollgate-dev/tollgate/core/fault"

// TrustLevel is how far a session is trusted. Levels are ordered: a greater one admits all that a
// lesser one does.
type TrustLevel uint8

// The trust levels, lowest first (contract A-6). The zero value is no level and admits nothing.
const (
	HighRisk TrustLevel = iota + 1
	Unverified
	LimitedTrust
	FullTrust
)

var trustLevelNames = [...]string{"", "HIGH_RISK", "UNVERIFIED", "LIMITED_TRUST", "FULL_TRUST"}

// String returns the level's name as the API writes it.
func (l TrustLevel) String() string {
	if int(l) < len(trustLevelNames) {
		return trustLevelNames[l]
	}
	return ""
}

// TrustLevels returns all levels, lowest first.
func TrustLevels() []TrustLevel { return []TrustLevel{HighRisk, Unverified, LimitedTrust, FullTrust} }

// Admits reports whether a session at l may perform operations that require the level required.
func (l TrustLevel) Admits(required TrustLevel) bool { return l != 0 && l >= required }

// ParseTrustLevel returns the level of a name as the API writes it.
func ParseTrustLevel(name string) (TrustLevel, error) {
	for _, l := range TrustLevels() {
		if l.String() == name {
			return l, nil
		}
	}
	return 0, fault.Newf(fault.Invalid, "unknown trust level %q", name).WithCode(CodeValidation)
}
