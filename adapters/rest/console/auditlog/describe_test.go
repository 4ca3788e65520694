package auditlog

import (
	"errors"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
)

// TestDescribe: details are shown in words, and people by their e-mail addresses.
func TestDescribe(t *testing.T) {
	details := map[string]any{
		"riskScore": 25.0, "trusted": true, "actor": "7", "action": "lock", "gone": nil, "versions": []any{"1.0.0", "<b>"}, "sessionId": "9", "trustLevel": "FULL_TRUST",
		"factors": map[string]any{"ipReputation": 0.0, "failedAttempts": 3.0}, "ipAddress": "192.0.2.1", "": "x",
	}
	got, ids, err := describe(details, func(id string) (string, error) { return "ada@example.com, who is " + id, nil })
	want := []site.Field{
		{Name: "", Value: "x"}, {Name: "Done by", Value: "ada@example.com, who is 7"},
		{Name: "Score, failed attempts", Value: "3"}, {Name: "Score, network reputation", Value: "0"}, {Name: "Gone", Value: "none"},
		{Name: "IP address", Value: "192.0.2.1"}, {Name: "Risk score", Value: "25"}, {Name: "Trust level", Value: "full trust"}, {Name: "Trusted", Value: "yes"},
		{Name: "Versions", Value: "1.0.0, <b>"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %q\nwant %q", err, got, want)
	}
	if want := []site.Field{{Name: "Session", Value: "9"}}; !slices.Equal(ids, want) {
		t.Errorf("the ids are %q, want %q", ids, want)
	}
	scored := map[string]any{"factors": map[string]any{"ipReputation": 5.0}, "reasons": map[string]any{"ipReputation": "a proxy"}}
	if got, _, err := describe(scored, nil); err != nil || !slices.Equal(got, []site.Field{{Name: "Score, network reputation", Value: "5 points: a proxy"}}) {
		t.Errorf("got %v, %q for a score with reasons", err, got)
	}
	away := errors.New("away")
	if _, _, err := describe(details, func(string) (string, error) { return "", away }); !errors.Is(err, away) {
		t.Errorf("without accounts: %v", err)
	}
}
