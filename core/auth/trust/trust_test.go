package trust_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
)

func TestLevels(t *testing.T) {
	for score, want := range map[int]auth.TrustLevel{
		0: auth.FullTrust, 20: auth.FullTrust, 21: auth.LimitedTrust, 40: auth.LimitedTrust,
		41: auth.Unverified, 60: auth.Unverified, 61: auth.HighRisk, 100: auth.HighRisk,
	} {
		if got := authtest.Bounds().Level(score); got != want {
			t.Errorf("score %d is %s, want %s", score, got, want)
		}
	}
}

func TestRequire(t *testing.T) {
	levels := []auth.TrustLevel{0, auth.HighRisk, auth.Unverified, auth.LimitedTrust, auth.FullTrust}
	for have := range levels {
		for need := 1; need < len(levels); need++ {
			err := trust.Require(levels[have], levels[need])
			if ok := have >= need; ok != (err == nil) {
				t.Errorf("%v for %v: %v", levels[have], levels[need], err)
			}
		}
	}
	if err := trust.Require(auth.HighRisk, auth.Unverified); strings.Contains(err.Error(), "step up") {
		t.Errorf("%v, but a session at HIGH_RISK may not step up", err)
	}
	f, ok := fault.As(trust.Require(auth.Unverified, auth.FullTrust))
	const challenge = `Bearer error="insufficient_user_authentication", ` +
		`error_description="a session at FULL_TRUST is required", acr_values="FULL_TRUST"`
	if !ok || f.Kind != fault.Forbidden || f.Code != auth.CodeInsufficientTrust || f.Details.Text("challenge") != challenge {
		t.Errorf("failure %+v", f)
	}
}

// TestMayLearn lists the sessions from which history is learnt when they begin.
func TestMayLearn(t *testing.T) {
	proven := risk.Device{Confirmed: true, Proven: true}
	for _, c := range []struct {
		level   auth.TrustLevel
		device  risk.Device
		binding trust.Binding
		want    bool
	}{
		{auth.FullTrust, risk.Device{Confirmed: true, Trusted: true, Proven: true}, trust.BindingPreferred, true},
		{auth.LimitedTrust, proven, trust.BindingPreferred, true},
		{auth.LimitedTrust, proven, trust.BindingRequired, true},
		{auth.LimitedTrust, proven, trust.BindingOff, false},
		{auth.LimitedTrust, risk.Device{Confirmed: true, Trusted: true}, trust.BindingPreferred, false},
		{auth.Unverified, proven, trust.BindingPreferred, false},
		{auth.HighRisk, proven, trust.BindingPreferred, false},
		{0, proven, trust.BindingPreferred, false},
	} {
		if got := trust.MayLearn(c.level, c.device, c.binding); got != c.want {
			t.Errorf("%s on %+v with %s: %t", c.level, c.device, c.binding, got)
		}
	}
}
