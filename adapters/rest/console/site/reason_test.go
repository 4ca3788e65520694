package site

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// TestReasonsBelowFullTrust checks that a session that a stolen password is enough for reads
// nothing of what is usual for the person.
func TestReasonsBelowFullTrust(t *testing.T) {
	reasons := []assessment.Reason{
		{Factor: risk.DeviceFamiliarity, Points: 30, Text: "no step-up or MFA was passed on the device"},
		{Factor: risk.GeographicAnomaly, Points: 20, Text: "FR is not a usual country, which are DE, NL"},
		{Factor: risk.IPReputation, Points: 10, Text: "the address is that of a proxy"},
		{Factor: risk.LoginVelocity, Points: 15, Text: "other sessions within one minute: 3"},
		{Factor: risk.FailedAttempts, Points: 10, Text: "failed sign-ins within 15 minutes: 2"},
	}
	for level, words := range map[auth.TrustLevel]bool{
		auth.Unverified: false, auth.LimitedTrust: false, auth.FullTrust: true,
	} {
		texts := strings.Join(DescribeReasons(reasons, level), " ")
		if strings.Contains(texts, "DE, NL") != words || !strings.Contains(texts, "New device") ||
			strings.Contains(texts, "..") || strings.Contains(texts, "Failed sign-ins within 15 minutes: 2.") != words {
			t.Errorf("at %s: %s", level, texts)
		}
		if n := len(DescribeReasons(reasons, level)); n != len(reasons) {
			t.Errorf("at %s: %d reasons", level, n)
		}
	}
}

// TestDescribeLevel says what raised or capped a level.
func TestDescribeLevel(t *testing.T) {
	t.Parallel()
	unknown := []assessment.Reason{{Factor: risk.DeviceFamiliarity, Points: 30, Text: newDevice}}
	confirmed := []assessment.Reason{{Factor: risk.DeviceFamiliarity, Points: 15, Text: "the device is confirmed, but not marked as trusted"}}
	for want, e := range map[string]assessment.Evaluation{
		"Full trust: a passkey was used.":                                              {TrustLevel: auth.FullTrust, Factor: auth.FactorPasskey, Reasons: unknown},
		"Full trust: by the score.":                                                    {TrustLevel: auth.FullTrust},
		"High risk: by the score.":                                                     {TrustLevel: auth.HighRisk, Reasons: unknown},
		"Not verified: by the score.":                                                  {TrustLevel: auth.Unverified, Reasons: confirmed},
		"Limited trust: a recovery code was entered.":                                  {TrustLevel: auth.LimitedTrust, Factor: auth.FactorRecovery, Reasons: unknown},
		"Not verified: no more without a code, whatever the score: " + newDevice + ".": {TrustLevel: auth.Unverified, Reasons: unknown},
		"Limited trust: no more without a code, whatever the score: the device is confirmed, but not marked as trusted.": {TrustLevel: auth.LimitedTrust, Reasons: confirmed},
	} {
		if got := DescribeLevel(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
