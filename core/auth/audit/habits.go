package audit

import (
	"maps"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// The details of a RISK_EVALUATION event that tell a person's habits.
const (
	Reasons     = "reasons"     // why each factor has its points, in words
	History     = "history"     // the score of the history with its parts
	RiskScore   = "riskScore"   // with the history on it includes the score of the history
	PointsScore = "pointsScore" // in History: the score of the points alone
)

// withoutHabits returns an event as a session below FULL_TRUST may read it (contract A-63): without the
// words of its reasons and without the score of the history. From these an attacker who knows only the
// password could learn, one feature after another, which device, place and language the owner uses, and
// sign in with them.
func withoutHabits(e auth.Event) auth.Event {
	if e.Type != auth.RiskEvaluation && e.Type != auth.SuspiciousActivity {
		return e
	}
	details := maps.Clone(e.Details)
	if history, ok := details[History].(map[string]any); ok {
		details[RiskScore] = history[PointsScore]
	}
	if e.Type == auth.SuspiciousActivity {
		delete(details, RiskScore)
	}
	delete(details, Reasons)
	delete(details, History)
	e.Details = details
	return e
}
