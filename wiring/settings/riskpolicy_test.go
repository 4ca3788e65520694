package settings_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// TestExamplePolicyHasTheDefaults requires that a service with docs/risk-policy.yaml scores like a
// service without a file, and that this is the score of the contract.
func TestExamplePolicyHasTheDefaults(t *testing.T) {
	for _, environ := range [][]string{nil, {"RISK_POLICY=../../docs/risk-policy.yaml"}} {
		s, err := settings.Read(environ)
		must.Succeed(t, err)
		if !reflect.DeepEqual(s.SignIn, authtest.SignIn()) || s.StepUp != authtest.StepUp() {
			t.Errorf("%v: %+v %+v", environ, s.SignIn, s.StepUp)
		}
	}
}

// TestEachKeyOfThePolicy requires that each key of the example sets another value.
func TestEachKeyOfThePolicy(t *testing.T) {
	example, err := os.ReadFile("../../docs/risk-policy.yaml")
	must.Succeed(t, err)
	seen := map[string]string{}
	group := ""
	for line := range strings.SplitSeq(string(example), "\n") {
		key, _, _ := strings.Cut(line, ":")
		switch {
		case strings.HasPrefix(line, "  "):
			// A value that keeps the order of cases: the highest for the worst, the lowest for the
			// best.
			for _, value := range []string{"21", "100", "1"} {
				s, err := settings.Read([]string{"RISK_POLICY=" + file(t, group+":\n"+key+": "+value+"\n")})
				if err != nil {
					continue
				}
				state := fmt.Sprintf("%+v", s.SignIn)
				if other, twice := seen[state]; twice {
					t.Errorf("%s.%s=%s is the same as %s", group, key, value, other)
				}
				seen[state] = group + "." + key + "=" + value
			}
		case line != "" && !strings.HasPrefix(line, "#"):
			group = key
		}
	}
	if len(seen) < 25 {
		t.Errorf("only %d values were tried", len(seen))
	}
}

// TestWrongPolicies requires that each error names the file and the key.
func TestWrongPolicies(t *testing.T) {
	for content, want := range map[string]string{
		"failedAttempts: {sum: 1}":                 "failedAttempts.sum: unknown key",
		"failed: {few: 1}":                         "failed.few: unknown key",
		"failedAttempts: {few: many}":              `failedAttempts.few: "many" is not a whole number`,
		"failedAttempts: {few: 1.5}":               `failedAttempts.few: "1.5" is not a whole number`,
		"failedAttempts: {few: }":                  "failedAttempts.few: has no value",
		"failedAttempts:":                          "failedAttempts: has no keys",
		"failedAttempts: 3":                        "is not a list of factors",
		"failedAttempts: {few: 1}\n---\n{}":        "has more than one document",
		"failedAttempts: {few: 1}\n---\na: [":      "has more than one document",
		"failedAttempts: {few: 1, few: 2}":         "already",
		"deviceFamiliarity: {unknown: 101}":        "deviceFamiliarity.unknown: 101 is not in the range 0 to 100",
		"ipReputation: {listed: -1}":               "ipReputation.listed: -1 is not in the range 0 to 100",
		"failedAttempts: {some: 5}":                "failedAttempts.some: 5 is less than failedAttempts.few, which is for a better case",
		"failedAttempts: {manyFrom: 2}":            "failedAttempts.manyFrom: 2 is less than failedAttempts.someFrom",
		"loginVelocity: {sessions: 0}":             "loginVelocity.sessions: 0 is less than 1",
		"geographicAnomaly: {travelMaxKmh: .nan}":  "geographicAnomaly.travelMaxKmh: ",
		"geographicAnomaly: {travelMinKm: -1}":     "geographicAnomaly.travelMinKm: -1 is not 0 or a positive number",
		"trustLevels: {LIMITED_TRUST: 10}":         "trustLevels.LIMITED_TRUST: 10 is less than trustLevels.FULL_TRUST",
		"historyTrustLevels: {LIMITED_TRUST: 10}":  "historyTrustLevels.LIMITED_TRUST: 10 is less than historyTrustLevels.FULL_TRUST",
		"trustLevels: {UNVERIFIED: 101}":           "trustLevels.UNVERIFIED: 101 is not in the range 0 to 100",
		"trustLevels: {HIGH_RISK: 80}":             "trustLevels.HIGH_RISK: unknown key",
		strings.Repeat("# a comment\n", 64<<10/10): "is larger than",
	} {
		path := file(t, content)
		_, err := settings.Read([]string{"RISK_POLICY=" + path})
		if err == nil || !strings.HasPrefix(err.Error(), "RISK_POLICY: "+path+": ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", content, err, want)
		}
	}
}

// TestOldVariablesOfThePolicy requires that a variable that is a key of the file now is an error
// that names the key, unless authentication does not run.
func TestOldVariablesOfThePolicy(t *testing.T) {
	environ := []string{"RISK_FAILED_FEW=20", "RISK_FULL_TRUST_MAX=10"}
	_, err := settings.Read(environ)
	for _, want := range []string{
		"RISK_FAILED_FEW is no setting any more: set failedAttempts.few in the file of RISK_POLICY",
		"RISK_FULL_TRUST_MAX is no setting any more: set trustLevels.FULL_TRUST in the file of RISK_POLICY",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if _, err := settings.ReadParts(environ, []string{"registry"}); err != nil {
		t.Errorf("without authentication: %v", err)
	}
	if _, err := settings.ReadRatelimit(environ); err != nil {
		t.Errorf("the rate limit service alone: %v", err)
	}
}

// TestFirstWrongSettingIsReported requires that the same setting is reported each time if several
// are wrong.
func TestFirstWrongSettingIsReported(t *testing.T) {
	environ := []string{
		"REFRESH_TOKEN_TTL=1ms", "REFRESH_TOKEN_MAX_AGE=1ms", "OTP_ATTEMPTS=0", "READ_TIMEOUT=1h",
		"RISK_POLICY=" + file(t, "failedAttempts: {few: 200, many: 200}"),
	}
	_, first := settings.Read(environ)
	if first == nil {
		t.Fatal("wrong settings are accepted")
	}
	for range 20 {
		if _, err := settings.Read(environ); err == nil || err.Error() != first.Error() {
			t.Fatalf("Read = %v, before it was %v", err, first)
		}
	}
}

// TestErrorsOfUseCasesNameTheVariable requires that a value that a use case refuses is reported by
// the name of its variable.
func TestErrorsOfUseCasesNameTheVariable(t *testing.T) {
	for variable, want := range map[string]string{
		"ACCESS_TOKEN_TTL=1ms":            "ACCESS_TOKEN_TTL: 1ms is less than a second",
		"LOCKOUT_THRESHOLD=101":           "LOCKOUT_THRESHOLD: 101 is more than 100",
		"DEVICE_BINDING=maybe":            `DEVICE_BINDING: "maybe" is not preferred, required or off`,
		"RISK_HISTORY=maybe":              `RISK_HISTORY: must be off, shadow or on, not "maybe"`,
		"HIGH_RISK_COUNTRIES=de":          `HIGH_RISK_COUNTRIES: "de" is not an ISO 3166 code of two capital letters`,
		"OTP_TTL=1ms":                     "OTP_TTL: 1ms is less than a second",
		"REAUTHENTICATION_MAX_AGE=25h":    "REAUTHENTICATION_MAX_AGE: 25h0m0s is not in the range 1s to 24h",
		"AUDIT_RETENTION=1ms":             "AUDIT_RETENTION: 1ms is neither 0 nor at least a second",
		"REVIEW_PENDING_MAX=0":            "REVIEW_PENDING_MAX: 0 is less than one",
		"REGISTRY_REVIEW=maybe":           `REGISTRY_REVIEW: "maybe" is neither on nor off`,
		"PACKAGE_CHECKS=maybe":            `PACKAGE_CHECKS: "maybe" is not enforce, warn or off`,
		"PUBLISHER_RECHECK=1ms":           "PUBLISHER_RECHECK: 1ms is less than one second",
		"WEBHOOK_RETRY_FOR=1ms":           "WEBHOOK_RETRY_FOR: 1ms is not between 1s and 720h0m0s",
		"NEAR_LIMIT_RATIO=2":              "NEAR_LIMIT_RATIO: 2 is not in the range 0 to 1",
		"MAX_DESCRIPTORS=-1":              "MAX_DESCRIPTORS: -1 is not in the range 0 to 1000000",
		"STATS_MAX_SERIES=-1":             "STATS_MAX_SERIES: -1 is negative",
		"KVSTORE_FAILURE_MODE=maybe":      `KVSTORE_FAILURE_MODE: "maybe" is not error, open, closed or local`,
		"EXPIRATION_JITTER_MAX_SECONDS=x": `EXPIRATION_JITTER_MAX_SECONDS: "x" is not a whole number`,
	} {
		_, err := settings.Read([]string{variable})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", variable, err, want)
		}
	}
}
