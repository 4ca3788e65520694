package prometheus

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Audit counts what the audit log tells: sessions with their trust and risk, step-ups and locks. An event counts when it is stored:
// one of a transaction when that is, and once, however often the transaction was tried.
type Audit struct {
	risk     prometheus.Histogram
	sessions labelCounters            // by trust level
	stepUps  map[string]labelCounters // by method, then outcome
	lockouts prometheus.Counter
}

// NewAudit returns counters of events.
func NewAudit(r prometheus.Registerer) *Audit {
	stepUps := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tollgate_step_ups_total",
		Help: "Steps of step-ups, by what became of them.",
	}, []string{"method", "outcome"})
	a := &Audit{
		risk: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "tollgate_login_risk_score",
			Help:    "Risk scores of logins that began a session, 0 to 100.",
			Buckets: prometheus.LinearBuckets(10, 10, 10),
		}),
		sessions: newLabelCounters(r, prometheus.CounterOpts{
			Name: "tollgate_sessions_started_total",
			Help: "Sessions begun, by the trust level they began with.",
		}, "trust_level", auth.HighRisk.String(), auth.Unverified.String(), auth.LimitedTrust.String(), auth.FullTrust.String()),
		stepUps: newTable(stepUps, stepUpMethods(), stepUpOutcomes()),
		lockouts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tollgate_lockouts_total",
			Help: "Locks after too many failures to sign in or to confirm a change of an account.",
		}),
	}
	r.MustRegister(a.risk, stepUps, a.lockouts)
	return a
}

func stepUpMethods() []string {
	return []string{string(auth.EmailOTP), string(auth.SMSOTP), string(auth.AuthenticatorApp)}
}

// Outcomes of the steps of a step-up that succeeded; one that did not has the reason that the audit log tells.
const (
	stepUpInitiated = "initiated"
	stepUpResent    = "resent"
	stepUpPassed    = "passed"
)

func stepUpOutcomes() []string {
	return []string{
		stepUpInitiated, stepUpResent, stepUpPassed,
		stepup.ReasonWrongCode, stepup.ReasonUsedUp, stepup.ReasonClosed, stepup.ReasonUndelivered,
	}
}

// count counts events that are stored.
func (a *Audit) countEvents(events []auth.Event) {
	for i := range events {
		switch e := &events[i]; e.Type {
		case auth.RiskEvaluation: // one for each session that begins (contract A-47)
			a.observeSession(e)
		case auth.StepUpAttempt:
			a.stepUps[textDetail(e, "method")].increment(stepUpOutcome(e))
		case auth.SuspiciousActivity:
			if textDetail(e, "reason") == string(auth.CodeAccountLocked) {
				a.lockouts.Inc()
			}
		}
	}
}

func (a *Audit) observeSession(e *auth.Event) {
	if score, ok := e.Details["riskScore"].(int); ok {
		a.risk.Observe(float64(score))
	}
	a.sessions.increment(textDetail(e, "trustLevel"))
}

func stepUpOutcome(e *auth.Event) string {
	if !e.Success {
		return textDetail(e, "reason")
	}
	switch textDetail(e, "action") {
	case stepup.ActionInitiate:
		return stepUpInitiated
	case stepup.ActionResend:
		return stepUpResent
	default:
		return stepUpPassed
	}
}

// detail returns a detail that is a text; empty when there is none.
func textDetail(e *auth.Event, name string) string {
	text, _ := e.Details[name].(string)
	return text
}

// unstored is the key, in the context of a transaction, of the events that are to be counted when it is stored.
type unstored struct{}

// AuditLog counts the events that are added to a log.
type AuditLog struct {
	authstore.AuditLog
	audit *Audit
}

// Log returns a log whose events are counted. It needs Transactions of the same Audit for those of a transaction that is undone
// not to count.
func (a *Audit) Log(l authstore.AuditLog) *AuditLog { return &AuditLog{l, a} }

// Append adds events (authstore.AuditLog).
func (l *AuditLog) Append(ctx context.Context, events ...auth.Event) error {
	if err := l.AuditLog.Append(ctx, events...); err != nil {
		return err
	}
	if pending, ok := ctx.Value(unstored{}).(*[]auth.Event); ok {
		*pending = append(*pending, events...)
		return nil
	}
	l.audit.countEvents(events)
	return nil
}

// Transactions counts the events of a transaction once it is stored.
type Transactions struct {
	runner transaction.Runner
	audit  *Audit
}

// Transactions returns a runner that counts what the log of the same Audit is told in its transactions.
func (a *Audit) Transactions(r transaction.Runner) *Transactions { return &Transactions{r, a} }

// Atomically runs do as one transaction (transaction.Runner).
func (t *Transactions) Atomically(ctx context.Context, do func(ctx context.Context) error) error {
	if ctx.Value(unstored{}) != nil { // joins one
		return t.runner.Atomically(ctx, do)
	}
	var pending []auth.Event
	err := t.runner.Atomically(context.WithValue(ctx, unstored{}, &pending), func(ctx context.Context) error {
		pending = pending[:0] // a retried transaction begins anew
		return do(ctx)
	})
	if err == nil {
		t.audit.countEvents(pending)
	}
	return err
}
