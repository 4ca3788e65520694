package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/core/auth/trust"
)

// Risk holds the settings of the risk score that are not in the file of RISK_POLICY.
type Risk struct {
	Policy string `env:"RISK_POLICY" desc:"YAML file with the points of the risk score and the bounds of the trust levels (docs/risk-policy.yaml has all keys, with their defaults)"`
}

// maxPolicyFile is the greatest size of the file of RISK_POLICY, in bytes.
const maxPolicyFile = 64 << 10

// The groups of the bounds in the file of RISK_POLICY: of the points, and of the score of the history.
// Their keys are the names of the levels.
const (
	TrustLevels        = "trustLevels"
	HistoryTrustLevels = "historyTrustLevels"
)

// riskPolicy returns the keys of the file of RISK_POLICY (contract ).
func (s *Settings) riskPolicy() []binding {
	var all []binding
	for _, w := range s.SignIn.Risk.Weights() {
		all = append(all, s.bind(w.Field, w.Key, w.Default, w.Meaning))
	}
	return slices.Concat(all,
		s.trustLevels(TrustLevels, &s.SignIn.Bounds, "points", [...]string{"20", "40", "60"}),
		s.trustLevels(HistoryTrustLevels, &s.SignIn.HistoryBounds, "history", [...]string{"52", "58", "68"}))
}

// trustLevels returns the keys of the bounds for a score.
func (s *Settings) trustLevels(group string, b *trust.Bounds, score string, defaults [3]string) []binding {
	highest := "the highest score of the " + score + " at the level"
	return []binding{
		s.bind(&b.Full, group+".FULL_TRUST", defaults[0], highest),
		s.bind(&b.Limited, group+".LIMITED_TRUST", defaults[1], highest),
		s.bind(&b.Unverified, group+".UNVERIFIED", defaults[2], highest+"; a higher one is HIGH_RISK"),
	}
}

// policyVariables are the variables that were settings before the file, with its keys.
var policyVariables = map[string]string{
	"RISK_DEVICE_CONFIRMED": "deviceFamiliarity.confirmed", "RISK_DEVICE_UNKNOWN": "deviceFamiliarity.unknown",
	"RISK_OTHER_COUNTRY":     "geographicAnomaly.otherCountry",
	"RISK_HIGH_RISK_COUNTRY": "geographicAnomaly.highRiskCountry",
	"RISK_IMPOSSIBLE_TRAVEL": "geographicAnomaly.impossibleTravel",
	"RISK_TRAVEL_MAX_KMH":    "geographicAnomaly.travelMaxKmh",
	"RISK_TRAVEL_MIN_KM":     "geographicAnomaly.travelMinKm", "RISK_ADDRESS_HIDDEN": "ipReputation.hidden",
	"RISK_ADDRESS_LISTED": "ipReputation.listed", "RISK_VELOCITY_SESSIONS": "loginVelocity.sessions",
	"RISK_VELOCITY_MINUTE": "loginVelocity.minute", "RISK_VELOCITY_FIVE_MINUTES": "loginVelocity.fiveMinutes",
	"RISK_FAILED_FEW": "failedAttempts.few", "RISK_FAILED_SOME": "failedAttempts.some",
	"RISK_FAILED_MANY":   "failedAttempts.many",
	"RISK_SOME_FAILURES": "failedAttempts.someFrom", "RISK_MANY_FAILURES": "failedAttempts.manyFrom",
	"RISK_FULL_TRUST_MAX": "trustLevels.FULL_TRUST", "RISK_LIMITED_TRUST_MAX": "trustLevels.LIMITED_TRUST",
	"RISK_UNVERIFIED_MAX": "trustLevels.UNVERIFIED",
}

// readRiskPolicy sets the points and bounds to those of the file of RISK_POLICY, or to their
// defaults.
func (s *Settings) readRiskPolicy() error {
	var values map[string]string
	if s.Risk.Policy != "" {
		content, err := readFile(s.Risk.Policy, maxPolicyFile)
		if err == nil {
			values, err = parsePolicy(content)
		}
		if err != nil {
			return fmt.Errorf("RISK_POLICY: %s: %w", s.Risk.Policy, err)
		}
	}
	known := s.riskPolicy()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !slices.ContainsFunc(known, func(b binding) bool { return b.Name == key }) {
			return fmt.Errorf("RISK_POLICY: %s: %s: unknown key", s.Risk.Policy, key)
		}
	}
	if wrong := parseBindings(known, values); len(wrong) > 0 {
		return fmt.Errorf("RISK_POLICY: %s: %s", s.Risk.Policy, strings.Join(wrong, "; "))
	}
	return nil
}

// parsePolicy returns the values of a file by their keys.
func parsePolicy(content []byte) (map[string]string, error) {
	groups := map[string]map[string]string{}
	file := yaml.NewDecoder(bytes.NewReader(content))
	if err := file.Decode(&groups); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("is not a list of factors with their keys: %w", err)
	}
	if err := file.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("has more than one document: write all keys in the first")
	}
	values := map[string]string{}
	for group, keys := range groups {
		if len(keys) == 0 {
			return nil, fmt.Errorf("%s: has no keys", group)
		}
		for key, value := range keys {
			if value == "" {
				return nil, fmt.Errorf("%s.%s: has no value", group, key)
			}
			values[group+"."+key] = value
		}
	}
	return values, nil
}

// RiskPolicy returns the text of a file of RISK_POLICY that has every key, with its default and its
// meaning.
func RiskPolicy() string {
	var b strings.Builder
	b.WriteString("# The points of the risk score, 0 to 100 for each case, and the bounds of the trust levels.\n" +
		"# These are the defaults: a file needs only the keys that differ. See risk.md.\n" +
		"# Made from the program by make generate.\n")
	last := ""
	for _, key := range new(Settings).riskPolicy() {
		group, name, _ := strings.Cut(key.Name, ".")
		if group != last {
			fmt.Fprintf(&b, "\n%s:\n", group)
			last = group
		}
		fmt.Fprintf(&b, "  %s: %s # %s\n", name, key.Default, key.Meaning)
	}
	return b.String()
}
