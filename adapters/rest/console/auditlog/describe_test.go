package auditlog

import (
	"errors"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
)

// TestDescribe: details are shown in words, and people by their e-mail addresses.
func TestDescribe(t *testing.T) {
	details := audit.Details{
		"riskScore": audit.Number(25.0), "trusted": audit.Flag(true), "actor": audit.Text("7"),
		"action": audit.Text("lock"), "gone": nil, "versions": audit.List{audit.Text("1.0.0"), audit.Text("<b>")},
		"sessionId": audit.Text("9"), "trustLevel": audit.Text("FULL_TRUST"),
		"factors":   audit.Details{"ipReputation": audit.Number(0.0), "failedAttempts": audit.Number(3.0)},
		"ipAddress": audit.Text("192.0.2.1"), "": audit.Text("x"),
	}
	got, ids, err := describe(details, func(id string) (string, error) { return "ada@example.com, who is " + id, nil })
	want := []site.Field{
		{Name: "", Value: "x"}, {Name: "Done by", Value: "ada@example.com, who is 7"},
		{Name: "Score, failed attempts", Value: "3"}, {Name: "Score, network reputation", Value: "0"}, {
			Name: "Gone", Value: "none",
		},
		{Name: "IP address", Value: "192.0.2.1"}, {Name: "Risk score", Value: "25"}, {
			Name: "Trust level", Value: "full trust",
		}, {Name: "Trusted", Value: "yes"},
		{Name: "Versions", Value: "1.0.0, <b>"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %q\nwant %q", err, got, want)
	}
	if want := []site.Field{{Name: "Session", Value: "9"}}; !slices.Equal(ids, want) {
		t.Errorf("the ids are %q, want %q", ids, want)
	}
	scored := audit.Details{
		"factors": audit.Details{"ipReputation": audit.Number(5.0)}, "reasons": audit.Details{
			"ipReputation": audit.Text("a proxy"),
		},
	}
	if got, _, err := describe(scored, nil); err != nil ||
		!slices.Equal(got, []site.Field{{Name: "Score, network reputation", Value: "5 points: a proxy"}}) {
		t.Errorf("got %v, %q for a score with reasons", err, got)
	}
	away := errors.New("away")
	if _, _, err := describe(details, func(string) (string, error) { return "", away }); !errors.Is(err, away) {
		t.Errorf("without accounts: %v", err)
	}
}
