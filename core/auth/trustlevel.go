package auth

import (
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// TrustLevel is how far a session is trusted.
type TrustLevel = trustlevel.Level

// The trust levels, lowest first (contract A-6).
const (
	HighRisk     = trustlevel.HighRisk
	Unverified   = trustlevel.Unverified
	LimitedTrust = trustlevel.LimitedTrust
	FullTrust    = trustlevel.FullTrust
)

// TrustLevels returns all levels, lowest first.
func TrustLevels() []TrustLevel { return trustlevel.All() }

// ParseTrustLevel returns the level of a name as the API writes it.
func ParseTrustLevel(name string) (TrustLevel, error) {
	l, err := trustlevel.Parse(name)
	if f, ok := fault.As(err); ok {
		return 0, f.WithCode(CodeValidation)
	}
	return l, nil
}
