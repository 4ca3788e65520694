package risk

import (
	"maps"

	"github.com/tollgate-dev/tollgate/core/audit"
)

// The details of the evaluation of a sign-in in the audit log that only a session at FULL_TRUST may
// read. With the history on, the score includes that of the history.
const (
	DetailScore       = "riskScore"
	DetailReasons     = "reasons"     // why each factor has its points, in words
	DetailHistory     = "history"     // the score of the history with its parts
	DetailPointsScore = "pointsScore" // of the history: the score of the points alone
)

// WithoutHabits returns an event as a session below FULL_TRUST may read it (contract A-63): without
// the words of its reasons and without the score of the history. From these an attacker who knows
// only the password could learn, one feature after another, which device, place and language the
// owner uses, and sign in with them.
func WithoutHabits(e audit.Event) audit.Event {
	if e.Category != audit.RiskEvaluation && e.Category != audit.SuspiciousActivity {
		return e
	}
	details := maps.Clone(e.Details)
	if h := details.Inner(DetailHistory); h != nil {
		details[DetailScore] = h[DetailPointsScore]
	}
	if e.Category == audit.SuspiciousActivity {
		delete(details, DetailScore)
	}
	delete(details, DetailReasons)
	delete(details, DetailHistory)
	e.Details = details
	return e
}
