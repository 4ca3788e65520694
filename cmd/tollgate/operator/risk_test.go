package operator_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/operator"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestRiskSuggest replays 20 people who sign in every day from their own addresses. The log does not
// say that they passed a step-up, as the service would ask them to.
func TestRiskSuggest(t *testing.T) {
	var in strings.Builder
	for n := range 600 {
		day, person := n/20, n%20
		fmt.Fprintf(&in, `{"id":%d,"ts":%d,"userId":%d,"ip":"203.0.113.%[3]d","passwordCorrect":true,`+
			`"ipReputation":"hosting"}`+"\n", n, 1795262400+day*86400+person, person)
	}
	for policy, advice := range map[string]string{
		"failedAttempts: {few: 10}":           "the present bounds challenge 0.0 % of these sign-ins: leave it on.",
		"historyTrustLevels: {FULL_TRUST: 5}": ": write the suggested ones to the file of RISK_POLICY, or set ",
		"trustLevels: {FULL_TRUST: 5}":        " 100.0 % of these sign-ins: raise those of the points too, or set ",
	} {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		fixture.WriteFile(t, file, policy)
		e := &fixture.Environment{Environ: []string{"RISK_POLICY=" + file}}
		suggest := func(args ...string) string {
			return e.RunCommand(t, in.String(), append([]string{"risk", "suggest", "-"}, args...)...)
		}
		text := strings.Join(strings.Fields(suggest()), " ")
		if !strings.Contains(text, advice) ||
			!strings.HasSuffix(text, "not confirmed, with 3.3 % of the sign-ins, are challenged at any score.") {
			t.Errorf("%s: %s", policy, text)
		}
		if without := suggest("--assume-step-up", "none"); strings.Join(strings.Fields(without), " ") == text {
			t.Errorf("%s: the same for people who pass no step-up", policy)
		}
		var got operator.SuggestionJSON
		err := json.Unmarshal([]byte(suggest("--output", "json")), &got)
		if err != nil || !strings.Contains(got.Advice, advice) || got.Bounds["historyTrustLevels.FULL_TRUST"] == 0 {
			t.Errorf("%s: %v, %+v", policy, err, got)
		}
	}
}
