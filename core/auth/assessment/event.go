package assessment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// The details of a RISK_EVALUATION event. With the history on, the score includes that of the
// history.
const (
	detailTrustLevel   = "trustLevel"
	detailSession      = "sessionId"
	DetailFactors      = "factors" // the points of each factor
	DetailFactor       = "factor"  // with which the sign-in was made
	detailSilent       = "unanswered"
	detailCountry      = "country"
	detailNetwork      = "network"
	detailOrganisation = "organisation" // in the network
)

// The details of the history in a RISK_EVALUATION event.
const (
	historyMode   = "mode"
	historySilent = "silent"
	historyScore  = "score"
	historyParts  = "parts"
	partPoints    = "points"
	partReason    = "reason"
)

// The reasons in audit events for which the history has no score.
const (
	SilentInstallation = "installation" // too few sign-ins of everybody
	SilentPerson       = "person"       // too few sign-ins of the person
	SilentUnread       = "unread"       // the counts could not be read
)

// NewEvaluation returns the RISK_EVALUATION of a new session: the points of each factor with the
// reason, the sources that did not answer, and the country and network of the address.
func NewEvaluation(session *auth.Session, v *Verdict) audit.Change {
	points, reasons := audit.Details{}, audit.Details{}
	for f, n := range v.Factors {
		name := risk.Factor(f).String()
		points[name], reasons[name] = audit.Number(n), audit.Text(v.Reasons[f])
	}
	details := audit.Details{
		risk.DetailScore: audit.Number(v.Score), detailTrustLevel: audit.Text(session.TrustLevel.String()),
		detailSession: audit.Text(session.ID),
		DetailFactors: points, risk.DetailReasons: reasons,
	}
	if len(v.SilentSources) > 0 {
		details[detailSilent] = audit.Texts(v.SilentSources)
	}
	if v.History.Mode.Learns() {
		details[risk.DetailHistory] = historyDetails(v)
	}
	details.Set(detailCountry, v.Signals.Location.Country)
	if n := v.Signals.Location.Network; n != (risk.Network{}) {
		details[detailNetwork] = audit.Details{
			"asn": audit.Number(n.ASN), detailOrganisation: audit.Text(n.Organisation),
		}
	}
	return audit.Change{Category: audit.RiskEvaluation, Subject: audit.Subject(session.UserID), Details: details}
}

// NewHighRisk returns the SUSPICIOUS_ACTIVITY of a new session at HIGH_RISK.
func NewHighRisk(session *auth.Session, v *Verdict) audit.Change {
	details := audit.Details{"reason": audit.Text("high_risk"), risk.DetailScore: audit.Number(v.Score)}
	session.Describe(details)
	session.DescribeAddress(details)
	return audit.Change{
		Category: audit.SuspiciousActivity, Subject: audit.Subject(session.UserID), Failed: true, Details: details,
	}
}

// historyDetails returns the score of the history with its parts, or why it is silent (contract
//
func historyDetails(v *Verdict) audit.Details {
	h := &v.History
	details := audit.Details{historyMode: audit.Text(h.Mode), risk.DetailPointsScore: audit.Number(v.Points)}
	switch {
	case h.Unread:
		details[historySilent] = audit.Text(SilentUnread)
	case h.Result.Silence == history.SilentInstallation:
		details[historySilent] = audit.Text(SilentInstallation)
	case h.Result.Silence == history.SilentPerson:
		details[historySilent] = audit.Text(SilentPerson)
	default:
		details[historyScore], details[historyParts] = audit.Number(math.Round(h.Result.Score)),
			partDetails(h.Result.Parts)
	}
	return details
}

func partDetails(parts []history.Part) audit.List {
	list := make(audit.List, 0, len(parts))
	for _, p := range parts {
		list = append(list, audit.Details{
			"feature": audit.Text(p.Feature.String()), "value": audit.Text(p.Value),
			partPoints: audit.Number(math.Round(p.Points*10) / 10), partReason: audit.Text(p.Sentence()),
		})
	}
	return list
}

// Evaluation is what a RISK_EVALUATION event says. What the event does not have is zero.
type Evaluation struct {
	Session      auth.SessionID
	Score        int             // 0 to 100
	TrustLevel   auth.TrustLevel // that the session got
	Factor       auth.Factor     // the second factor, or what is one too; empty without one
	Reasons      []Reason        // those with the most points first
	Country      string          // ISO 3166-1; empty if it is not known
	Organisation string          // that has the network; empty if it is not known
	History      HistoryEvaluation
}

// Reason is why a sign-in got points: a part of its risk score, in words.
type Reason struct {
	Factor risk.Factor
	Points int // more than 0
	Text   string
}

// HistoryEvaluation is what a RISK_EVALUATION event says about the history.
type HistoryEvaluation struct {
	Mode        HistoryMode // empty if the history is off
	Silent      string      // why there is no score; empty if there is one
	Score       int         // 0 to 100
	PointsScore int         // of the points alone
	Reasons     []string    // in words, those that change the score most first
}

// ReadEvaluation returns what a RISK_EVALUATION event says.
func ReadEvaluation(e *audit.Event) Evaluation {
	level, err := auth.ParseTrustLevel(e.Details.Text(detailTrustLevel))
	if err != nil {
		level = 0 // of a newer version
	}
	return Evaluation{
		Session: auth.SessionID(e.Details.Text(detailSession)), Score: e.Details.Int(risk.DetailScore), TrustLevel: level,
		Factor: auth.Factor(e.Details.Text(DetailFactor)), Reasons: readReasons(e.Details), Country: e.Details.Text(detailCountry),
		Organisation: e.Details.Inner(detailNetwork).Text(detailOrganisation),
		History:      readHistory(e.Details.Inner(risk.DetailHistory)),
	}
}

// Explain returns why a session that began with the evaluation has its trust level, in sentences for
// operators. Without an evaluation, e is nil.
func (e *Evaluation) Explain(s *auth.Session) []string {
	began := "The newest session began at " + s.CreatedAt.UTC().Format(time.RFC3339)
	if e == nil {
		return []string{fmt.Sprintf("%s with the risk score %d. Its evaluation is not in the audit log.", began, s.RiskScore)}
	}
	all := []string{fmt.Sprintf("%s with the risk score %d and %s.", began, e.Score, e.TrustLevel)}
	for _, r := range e.Reasons {
		all = append(all, fmt.Sprintf("%s, %d points: %s.", r.Factor, r.Points, r.Text))
	}
	for _, r := range e.History.Reasons {
		all = append(all, "History: "+r+".")
	}
	if s.TrustLevel != e.TrustLevel {
		all = append(all, "It has "+s.TrustLevel.String()+" since a step-up or another change.")
	}
	return all
}

func readReasons(d audit.Details) (reasons []Reason) {
	points, texts := d.Inner(DetailFactors), d.Inner(risk.DetailReasons)
	for f := range (risk.Factors{}) {
		factor := risk.Factor(f)
		if n := points.Int(factor.String()); n > 0 {
			reasons = append(reasons, Reason{factor, n, texts.Text(factor.String())})
		}
	}
	slices.SortStableFunc(reasons, func(a, b Reason) int { return b.Points - a.Points })
	return reasons
}

func readHistory(d audit.Details) HistoryEvaluation {
	parts := slices.Clone(d.List(historyParts))
	change := func(part audit.Value) float64 { return math.Abs(inner(part).Number(partPoints)) }
	slices.SortStableFunc(parts, func(a, b audit.Value) int { return cmp.Compare(change(b), change(a)) })
	h := HistoryEvaluation{
		Mode: HistoryMode(d.Text(historyMode)), Silent: d.Text(historySilent), Score: d.Int(historyScore),
		PointsScore: d.Int(risk.DetailPointsScore),
	}
	for _, part := range parts {
		h.Reasons = append(h.Reasons, inner(part).Text(partReason))
	}
	return h
}

func inner(v audit.Value) audit.Details {
	d, _ := v.(audit.Details)
	return d
}
