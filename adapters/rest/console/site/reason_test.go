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
