package prometheus

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/transaction"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// retryingRunner runs each outer transaction twice, like a database that requires a retry.
type retryingRunner struct{ transaction.Runner }

// insideKey is the key in the context of a transaction that has begun.
type insideKey struct{}

func (r retryingRunner) Atomically(ctx context.Context, do func(ctx context.Context) error) error {
	if ctx.Value(insideKey{}) != nil {
		return r.Runner.Atomically(ctx, do)
	}
	ctx = context.WithValue(ctx, insideKey{}, true)
	// the first try must fail
	_ = r.Runner.Atomically(ctx, func(ctx context.Context) error { return errors.Join(do(ctx), errors.New("again")) })
	return r.Runner.Atomically(ctx, do)
}

// countedAudit is an audit log whose events are counted in registry.
type countedAudit struct {
	log          *AuditLog
	transactions *Transactions
	registry     *prometheus.Registry
}

func newCountedAudit() countedAudit {
	db, registry := fakedb.New(), prometheus.NewRegistry()
	a := NewAudit(everywhere(registry))
	return countedAudit{a.Log(fakedb.NewAuditLog(db)), a.Transactions(retryingRunner{db}), registry}
}

func newEvent(t audit.Category, success bool, details audit.Details) audit.Event {
	return audit.Event{Category: t, Success: success, Details: details}
}

func riskEvent(score int, level auth.TrustLevel) audit.Event {
	return newEvent(audit.RiskEvaluation, true, audit.Details{
		"riskScore": audit.Number(score), "trustLevel": audit.Text(level.String()),
	})
}

// historyEvent returns the event of a session with a detail of the history.
func historyEvent(history audit.Details) audit.Event {
	e := riskEvent(30, auth.LimitedTrust)
	e.Details["history"] = history
	return e
}

// TestScoreDifference checks the sign of the difference: positive if the history finds the sign-in
// riskier.
func TestScoreDifference(t *testing.T) {
	a := newCountedAudit()
	must.Succeed(t, a.log.Append(t.Context(),
		historyEvent(audit.Details{
			"mode": audit.Text("shadow"), "pointsScore": audit.Number(30), "score": audit.Number(72),
		})))
	families, err := a.registry.Gather()
	must.Succeed(t, err)
	sums := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			sums[name] = m.GetHistogram().GetSampleSum()
		}
	}
	for name, want := range map[string]float64{
		"tollgate_login_score points": 30, "tollgate_login_score history": 72, "tollgate_login_score_difference": 42,
	} {
		if sums[name] != want {
			t.Errorf("the sum of %s is %v, want %v", name, sums[name], want)
		}
	}
}

func TestEvents(t *testing.T) {
	stepUp := func(success bool, method auth.StepUpMethod, name, value string) audit.Event {
		return newEvent(audit.StepUpAttempt, success, audit.Details{
			"method": audit.Text(string(method)), name: audit.Text(value),
		})
	}
	const sessions, risk, steps = "tollgate_sessions_started_total ", "tollgate_login_risk_score", "tollgate_step_ups_total "
	for name, c := range map[string]struct {
		event audit.Event
		moves []string // the samples that the event increments
	}{
		"a session with limited trust": {riskEvent(30, auth.LimitedTrust), []string{sessions + "LIMITED_TRUST", risk}},
		"a session at high risk":       {riskEvent(100, auth.HighRisk), []string{sessions + "HIGH_RISK", risk}},
		"a session with a score of the history": {historyEvent(audit.Details{
			"mode": audit.Text("shadow"), "pointsScore": audit.Number(30), "score": audit.Number(72),
		}), []string{
			sessions + "LIMITED_TRUST", risk, "tollgate_login_score points", "tollgate_login_score history",
			"tollgate_login_score_difference",
		}},
		"a session of a new person": {historyEvent(audit.Details{
			"mode": audit.Text("on"), "pointsScore": audit.Number(30), "silent": audit.Text("person"),
		}), []string{
			sessions + "LIMITED_TRUST", risk, "tollgate_login_history_silent_total person",
		}},
		"a step-up begins": {
			stepUp(true, auth.EmailOTP, "action", "initiate"), []string{steps + "EMAIL_OTP initiated"},
		},
		"a code is sent again": {
			stepUp(true, auth.SMSOTP, "action", "resend"), []string{steps + "SMS_OTP resent"},
		},
		"a step-up succeeds": {
			stepUp(true, auth.AuthenticatorApp, "action", "verify"), []string{steps + "AUTHENTICATOR_APP passed"},
		},
		"a step-up fails with a wrong code": {
			stepUp(false, auth.EmailOTP, "reason", "invalid_otp"), []string{steps + "EMAIL_OTP invalid_otp"},
		},
		"a step-up has no attempts left": {
			stepUp(false, auth.EmailOTP, "reason", "step_up_attempts_exceeded"), []string{
				steps + "EMAIL_OTP step_up_attempts_exceeded",
			},
		},
		"the challenge of a step-up is closed": {
			stepUp(false, auth.EmailOTP, "reason", "challenge_closed"), []string{steps + "EMAIL_OTP challenge_closed"},
		},
		"a code cannot be delivered": {
			stepUp(false, auth.SMSOTP, "reason", "delivery_failed"), []string{steps + "SMS_OTP delivery_failed"},
		},
		"an unknown method is not counted": {stepUp(true, "PIGEON", "action", "verify"), nil},
		"an unknown reason is not counted": {stepUp(false, auth.EmailOTP, "reason", "whim"), nil},
		"an account is locked": {
			newEvent(audit.SuspiciousActivity, false, audit.Details{"reason": audit.Text("account_locked")}), []string{
				"tollgate_lockouts_total",
			},
		},
		"another suspicious activity is not counted": {
			newEvent(audit.SuspiciousActivity, false, audit.Details{
				"reason": audit.Text("step_up_attempts_exceeded"),
			}), nil,
		},
		"an event without a metric": {newEvent(audit.DeviceChange, true, nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := newCountedAudit()
			c.event.ID = "a"
			must.Succeed(t, a.log.Append(t.Context(), c.event))
			moved := map[string]float64{}
			for _, m := range c.moves {
				moved[m] = 1
			}
			checkMetrics(t, a.registry, moved)
		})
	}
}

// TestEventsOfTransactions checks that events are counted once if their transaction is committed,
// and are not counted if it is rolled back.
func TestEventsOfTransactions(t *testing.T) {
	a, errRollback := newCountedAudit(), errors.New("rollback")
	appendEvent := func(id audit.EventID, end error) func(context.Context) error {
		return func(ctx context.Context) error {
			e := riskEvent(10, auth.FullTrust)
			e.ID = id
			must.Succeed(t, a.log.Append(ctx, e))
			if n := len(nonzeroSamples(t, a.registry)); n > 0 && id == "first" {
				t.Error("an event is counted before its transaction is committed")
			}
			return end
		}
	}
	must.Succeed(t, a.transactions.Atomically(t.Context(), appendEvent("first", nil)))
	stored := map[string]float64{"tollgate_sessions_started_total FULL_TRUST": 1, "tollgate_login_risk_score": 1}
	checkMetrics(t, a.registry, stored)
	if err := a.transactions.Atomically(t.Context(), appendEvent("second", errRollback)); !errors.Is(err, errRollback) {
		t.Errorf("a transaction that is rolled back returns %v, want its error", err)
	}
	checkMetrics(t, a.registry, stored)
	err := a.transactions.Atomically(t.Context(), func(ctx context.Context) error {
		return errors.Join(a.transactions.Atomically(ctx, appendEvent("third", nil)),
			a.transactions.Atomically(ctx, appendEvent("fourth", nil)))
	})
	must.Succeed(t, err)
	checkMetrics(t, a.registry, map[string]float64{
		"tollgate_sessions_started_total FULL_TRUST": 3, "tollgate_login_risk_score": 3,
	})
}

// brokenLog is an audit log whose Append returns an error.
type brokenLog struct{ *fakedb.AuditLog }

func (brokenLog) Append(context.Context, ...audit.Event) error { return errors.New("not available") }

func TestEventsThatAreNotStored(t *testing.T) {
	registry := prometheus.NewRegistry()
	log := NewAudit(everywhere(registry)).Log(brokenLog{})
	if err := log.Append(t.Context(), riskEvent(10, auth.FullTrust)); err == nil {
		t.Error("Append does not return the error of the log")
	}
	checkMetrics(t, registry, map[string]float64{})
}
