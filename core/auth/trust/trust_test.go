package trust_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
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
