package signin

import (
	"cmp"
	"math"
	"slices"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/history"
)

// The reasons in audit events for which the history has no score.
const (
	SilentInstallation = "installation" // too few sign-ins of everybody
	SilentPerson       = "person"       // too few sign-ins of the person
	SilentUnread       = "unread"       // the counts could not be read
)

// historyDetails returns the detail "history" of a RISK_EVALUATION event (contract A-60): the score
// of the history with its parts, or why there is none. It returns nil if the history is off.
func historyDetails(v *assessment.Verdict) map[string]any {
	h := &v.History
	if !h.Mode.Learns() {
		return nil
	}
	details := map[string]any{"mode": string(h.Mode), audit.PointsScore: v.Points}
	switch {
	case h.Unread:
		details["silent"] = SilentUnread
	case h.Result.Silence == history.SilentInstallation:
		details["silent"] = SilentInstallation
	case h.Result.Silence == history.SilentPerson:
		details["silent"] = SilentPerson
	default:
		details["score"], details["parts"] = int(math.Round(h.Result.Score)), partDetails(h.Result.Parts)
	}
	return details
}

func partDetails(parts []history.Part) []any {
	list := make([]any, 0, len(parts))
	for _, p := range parts {
		list = append(list, map[string]any{
			"feature": p.Feature.String(), "value": p.Value, "points": math.Round(p.Points*10) / 10, "reason": p.Sentence(),
		})
	}
	return list
}

// HistoryEvaluation is what a RISK_EVALUATION event says about the history.
type HistoryEvaluation struct {
	Mode        assessment.HistoryMode // empty if the history is off
	Silent      string                 // why there is no score; empty if there is one
	Score       int                    // 0 to 100
	PointsScore int                    // of the points alone
	Reasons     []string               // in words, those that change the score most first
}

// historyOf returns what a RISK_EVALUATION event says about the history.
func historyOf(e auth.Event) HistoryEvaluation {
	h, ok := e.Details[audit.History].(map[string]any)
	if !ok {
		return HistoryEvaluation{}
	}
	mode, _ := h["mode"].(string)
	silent, _ := h["silent"].(string)
	parts, _ := h["parts"].([]any)
	v := HistoryEvaluation{
		Mode: assessment.HistoryMode(mode), Silent: silent, Score: pointsOf(h["score"]), PointsScore: pointsOf(h[audit.PointsScore]),
	}
	type weighted struct {
		reason string
		points float64
	}
	var list []weighted
	for _, part := range parts {
		p, _ := part.(map[string]any)
		reason, _ := p["reason"].(string)
		points, _ := p["points"].(float64)
		list = append(list, weighted{reason, math.Abs(points)})
	}
	slices.SortStableFunc(list, func(a, b weighted) int { return cmp.Compare(b.points, a.points) })
	for _, w := range list {
		v.Reasons = append(v.Reasons, w.reason)
	}
	return v
}
