package prometheus

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/locking"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Audit counts the events of the audit log: sessions with their trust and risk, step-ups and
// lockouts. An event counts when it is stored. An event of a transaction counts once, when the
// transaction is committed, even if the transaction was tried several times.
type Audit struct {
	risk     prometheus.Histogram
	history  historyMetrics
	sessions labelCounters            // by trust level
	stepUps  map[string]labelCounters // by method, then outcome
	lockouts prometheus.Counter
}

// NewAudit registers the metrics of events and returns an Audit.
func NewAudit(r Registerers) *Audit {
	stepUps := newCounters(r.Auth, "tollgate_step_ups_total", "Steps of step-ups, by outcome.", "method", "outcome")
	a := &Audit{
		risk: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "tollgate_login_risk_score",
			Help:    "Risk scores of logins that started a session, 0 to 100.",
			Buckets: prometheus.LinearBuckets(10, 10, 10),
		}),
		sessions: newLabelCounters(r.Auth, "tollgate_sessions_started_total", "Started sessions, by their first trust level.",
			"trust_level", each.Texts(auth.TrustLevels())...),
		stepUps: newTable(stepUps, stepUpMethods(), stepUpOutcomes()),
		lockouts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tollgate_lockouts_total",
			Help: "Lockouts after too many failed sign-ins or failed confirmations of an account change.",
		}),
	}
	a.history = newHistoryMetrics(r.Auth)
	r.Auth.MustRegister(a.risk, a.lockouts)
	return a
}

func stepUpMethods() []string {
	return []string{string(auth.EmailOTP), string(auth.SMSOTP), string(auth.AuthenticatorApp), string(auth.PasskeyMethod), string(auth.CompanySignIn)}
}

// The outcomes of steps that succeeded, by the action. A failed step has the reason of its event.
var stepUpSuccesses = map[audit.Action]string{
	stepup.ActionInitiate: "initiated", stepup.ActionResend: "resent", stepup.ActionVerify: "passed",
}

func stepUpOutcomes() []string {
	return append(slices.Collect(maps.Values(stepUpSuccesses)),
		stepup.ReasonWrongCode, stepup.ReasonUsedUp, stepup.ReasonClosed, stepup.ReasonUndelivered)
}

// countEvents counts stored events.
func (a *Audit) countEvents(events []audit.Event) {
	for i := range events {
		switch e := &events[i]; {
		case e.Category == audit.RiskEvaluation: // one for each new session (contract A-47)
			a.observeSession(assessment.ReadEvaluation(e))
		case e.Category == audit.StepUpAttempt:
			attempt := stepup.ReadAttempt(e)
			outcome := attempt.Reason
			if e.Success {
				outcome = stepUpSuccesses[attempt.Action]
			}
			a.stepUps[string(attempt.Method)].increment(outcome)
		case locking.IsLock(e):
			a.lockouts.Inc()
		}
	}
}

func (a *Audit) observeSession(e assessment.Evaluation) {
	a.risk.Observe(float64(e.Score))
	a.history.observe(e.History)
	a.sessions.increment(e.TrustLevel.String())
}

// unstored is the context key of the events of a transaction, which are counted after the commit.
type unstored struct{}

// AuditLog counts the events that are added to a log.
type AuditLog struct {
	authstore.AuditLog
	audit *Audit
}

// Log returns a log whose events are counted. Events of transactions are counted correctly only if
// the transactions run in Transactions of the same Audit.
func (a *Audit) Log(l authstore.AuditLog) *AuditLog { return &AuditLog{l, a} }

// Append implements authstore.AuditLog.
func (l *AuditLog) Append(ctx context.Context, events ...audit.Event) error {
	if err := l.AuditLog.Append(ctx, events...); err != nil {
		return err
	}
	if pending, ok := ctx.Value(unstored{}).(*[]audit.Event); ok {
		*pending = append(*pending, events...)
		return nil
	}
	l.audit.countEvents(events)
	return nil
}

// Transactions counts the events of a transaction after its commit.
type Transactions struct {
	runner transaction.Runner
	audit  *Audit
}

// Transactions returns a runner that counts the events that its transactions add to the log of the
// same Audit.
func (a *Audit) Transactions(r transaction.Runner) *Transactions { return &Transactions{r, a} }

// Atomically implements transaction.Runner.
func (t *Transactions) Atomically(ctx context.Context, do func(ctx context.Context) error) error {
	if ctx.Value(unstored{}) != nil { // part of an outer transaction
		return t.runner.Atomically(ctx, do)
	}
	var pending []audit.Event
	err := t.runner.Atomically(context.WithValue(ctx, unstored{}, &pending), func(ctx context.Context) error {
		pending = pending[:0] // a transaction that is tried again adds its events again
		return do(ctx)
	})
	if err == nil {
		t.audit.countEvents(pending)
	}
	return err
}
