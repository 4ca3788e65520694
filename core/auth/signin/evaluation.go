package signin

import (
	"slices"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// riskDetails returns the details of a RISK_EVALUATION event: the points of each factor with the
// reason, the sources that did not answer, and the country and network of the address.
func riskDetails(session *auth.Session, v *assessment.Verdict) map[string]any {
	f, why := v.Factors, v.Reasons
	details := map[string]any{
		audit.RiskScore: v.Score, "trustLevel": session.TrustLevel.String(), "sessionId": string(session.ID),
		"factors": map[string]any{
			"deviceFamiliarity": f.DeviceFamiliarity, "geographicAnomaly": f.GeographicAnomaly,
			"ipReputation": f.IPReputation, "loginVelocity": f.LoginVelocity, "failedAttempts": f.FailedAttempts,
		},
		audit.Reasons: map[string]any{
			"deviceFamiliarity": why.DeviceFamiliarity, "geographicAnomaly": why.GeographicAnomaly,
			"ipReputation": why.IPReputation, "loginVelocity": why.LoginVelocity, "failedAttempts": why.FailedAttempts,
		},
	}
	if len(v.SilentSources) > 0 {
		details["unanswered"] = v.SilentSources
	}
	if h := historyDetails(v); h != nil {
		details[audit.History] = h
	}
	if l := v.Signals.Location; l.Country != "" {
		details["country"] = l.Country
	}
	if n := v.Signals.Location.Network; n != (risk.Network{}) {
		details["network"] = map[string]any{"asn": n.ASN, "organisation": n.Organisation}
	}
	return details
}

// Reason is why a sign-in got points: a part of its risk score, in words.
type Reason struct {
	Factor string // as in the event
	Points int
	Text   string
}

// ReasonsOf returns the reasons in a RISK_EVALUATION event that have points, those with the most first.
func ReasonsOf(e auth.Event) (reasons []Reason) {
	points, _ := e.Details["factors"].(map[string]any)
	texts, _ := e.Details[audit.Reasons].(map[string]any)
	for _, factor := range [...]string{"deviceFamiliarity", "geographicAnomaly", "ipReputation", "loginVelocity", "failedAttempts"} {
		text, _ := texts[factor].(string)
		if n := pointsOf(points[factor]); n > 0 {
			reasons = append(reasons, Reason{factor, n, text})
		}
	}
	slices.SortStableFunc(reasons, func(a, b Reason) int { return b.Points - a.Points })
	return reasons
}

// pointsOf returns a number of an event, which is a float64 after it was stored as JSON.
func pointsOf(v any) int {
	switch n := v.(type) {
	case int:
		return n
	case float64:
		return int(n)
	}
	return 0
}

// Evaluation is what a RISK_EVALUATION event says.
type Evaluation struct {
	Score        int    // 0 to 100
	TrustLevel   string // that the session got
	Reasons      []Reason
	Country      string // ISO 3166-1; empty if it is not known
	Organisation string // that has the network; empty if it is not known
	History      HistoryEvaluation
}

// EvaluationOf returns what a RISK_EVALUATION event says. What the event does not have is zero.
func EvaluationOf(e auth.Event) Evaluation {
	level, _ := e.Details["trustLevel"].(string)
	country, _ := e.Details["country"].(string)
	network, _ := e.Details["network"].(map[string]any)
	organisation, _ := network["organisation"].(string)
	return Evaluation{pointsOf(e.Details[audit.RiskScore]), level, ReasonsOf(e), country, organisation, historyOf(e)}
}
