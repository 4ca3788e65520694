// Package trust turns a risk score and the state of a device into a trust level, and checks whether
// a level suffices. Its functions are pure. Package risk computes the score.
package trust

import (
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// Bounds are the greatest risk scores of the levels. A score above all of them is HIGH_RISK
// (contract A-31).
type Bounds struct {
	Full       int
	Limited    int
	Unverified int
}

// Validate returns an error that begins with the name of the first field that is out of range.
func (b Bounds) Validate() error {
	for _, bound := range []struct {
		name  string
		score int
	}{
		{"Full", b.Full}, {"Limited", b.Limited}, {"Unverified", b.Unverified},
	} {
		if bound.score < 0 || bound.score > risk.MaxScore {
			return fmt.Errorf("%s: %d is not in the range 0 to %d", bound.name, bound.score, risk.MaxScore)
		}
	}
	switch {
	case b.Limited < b.Full:
		return fmt.Errorf("Limited: %d is less than Full", b.Limited)
	case b.Unverified < b.Limited:
		return fmt.Errorf("Unverified: %d is less than Limited", b.Unverified)
	}
	return nil
}

// Level returns the level of a score.
func (b Bounds) Level(score int) auth.TrustLevel {
	switch {
	case score <= b.Full:
		return auth.FullTrust
	case score <= b.Limited:
		return auth.LimitedTrust
	case score <= b.Unverified:
		return auth.Unverified
	}
	return auth.HighRisk
}

// Binding decides how much the token of a device counts (contract A-37).
type Binding string

// The ways to bind a session to a device.
const (
	BindingPreferred Binding = "preferred" // without its token a confirmed device gets at most LIMITED_TRUST
	BindingRequired  Binding = "required"  // without its token a device gets at most UNVERIFIED
	BindingOff       Binding = "off"       // the fields of deviceInfo suffice
)

// Validate returns an error if the binding is not one of the constants.
func (b Binding) Validate() error {
	switch b {
	case BindingPreferred, BindingRequired, BindingOff:
		return nil
	}
	return fmt.Errorf("%q is not preferred, required or off", b)
}

// Cap returns the highest level that a session on the device may have, whatever its score
// (contract A-32).
func Cap(d risk.Device, b Binding) auth.TrustLevel {
	switch {
	case !d.Confirmed:
		return auth.Unverified
	case !d.Proven && b == BindingRequired:
		return auth.Unverified
	case d.Assured():
		return auth.FullTrust
	}
	return auth.LimitedTrust
}

// Decide returns the level of a new session: that of its score, capped by its device.
func Decide(score int, d risk.Device, bounds Bounds, b Binding) auth.TrustLevel {
	return min(bounds.Level(score), Cap(d, b))
}

// MayLearn reports whether history is learnt from a session when it begins. It is learnt from fewer
// sessions than the usual countries of package risk: a password and copied fields of a device reach
// LIMITED_TRUST, and must not become familiar. So a session below FULL_TRUST also needs a device
// that shows its token (contract A-58). Other sessions are learnt from when they pass a step-up.
func MayLearn(level auth.TrustLevel, d risk.Device, binding Binding) bool {
	switch {
	case level.Admits(auth.FullTrust):
		return true
	case level.Admits(auth.LimitedTrust):
		return d.Confirmed && d.Proven && binding != BindingOff
	}
	return false
}

// Require returns fault.Forbidden with code insufficient_trust if the level have does not admit
// operations that require the level need. The detail "challenge" is the challenge of RFC 9470,
// section 3, for WWW-Authenticate.
func Require(have, need auth.TrustLevel) error {
	if have.Admits(need) {
		return nil
	}
	remedy := "step up"
	if have < auth.Unverified { // too little for a step-up (contract A-1)
		remedy = "sign in again, later or from a device that is known"
	}
	return fault.Newf(fault.Forbidden, "this needs a session at %s, this one is at %s: %s", need, have, remedy).
		WithCode(auth.CodeInsufficientTrust).
		WithDetail("requiredTrustLevel", jsonvalue.Text(need.String())).
		WithDetail("trustLevel", jsonvalue.Text(have.String())).
		WithDetail("challenge", jsonvalue.Text(Challenge(need)))
}

// RequireRecent returns fault.Forbidden with code insufficient_trust if the person of a session has
// not given a password or a code within maxAge (contract A-64). A time in the future, of a clock
// that was ahead, is not recent. The detail "challenge" is that of RFC 9470 with max_age.
func RequireRecent(s *auth.Session, now time.Time, maxAge time.Duration) error {
	age := now.Sub(s.Authenticated())
	if age <= maxAge && age >= -auth.ClockTolerance {
		return nil
	}
	seconds := int(maxAge / time.Second)
	return fault.Newf(fault.Forbidden, "this needs a password or a code that was given within the last %d seconds: "+
		"step up", seconds).WithCode(auth.CodeInsufficientTrust).
		WithDetail("requiredTrustLevel", jsonvalue.Text(auth.FullTrust.String())).
		WithDetail("trustLevel", jsonvalue.Text(s.TrustLevel.String())).
		WithDetail("maxAge", jsonvalue.Number(seconds)).
		WithDetail("challenge", jsonvalue.Text(fmt.Sprintf(`%s, max_age="%d"`, Challenge(auth.FullTrust), seconds)))
}

// RequireProven returns the error that a session, as it is stored now, causes for a change of how its
// person signs in: fault.Unauthenticated with code invalid_token after its end, and those of Require for
// FULL_TRUST and of RequireRecent.
func RequireProven(s *auth.Session, now time.Time, maxAge time.Duration) error {
	if !s.Active(now) {
		return fault.New(fault.Unauthenticated, "the session has ended").WithCode(auth.CodeInvalidToken)
	}
	if err := Require(s.TrustLevel, auth.FullTrust); err != nil {
		return err
	}
	return RequireRecent(s, now, maxAge)
}

// Challenge returns the challenge of RFC 9470, section 3, for a level.
func Challenge(need auth.TrustLevel) string {
	return fmt.Sprintf(`Bearer error="insufficient_user_authentication", `+
		`error_description="a session at %[1]s is required", acr_values="%[1]s"`, need)
}
