package prometheus

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// fickle runs each outer transaction twice, like a database that requires a retry.
type fickle struct{ transaction.Runner }

// inside is the key, in a context, of a transaction under way.
type inside struct{}

func (f fickle) Atomically(ctx context.Context, do func(ctx context.Context) error) error {
	if ctx.Value(inside{}) != nil {
		return f.Runner.Atomically(ctx, do)
	}
	ctx = context.WithValue(ctx, inside{}, true)
	_ = f.Runner.Atomically(ctx, func(ctx context.Context) error { return errors.Join(do(ctx), errors.New("again")) }) // on purpose
	return f.Runner.Atomically(ctx, do)
}

// audited is a log whose events are counted.
type audited struct {
	log          *AuditLog
	transactions *Transactions
	registry     *prometheus.Registry
}

func newAudited() audited {
	db, registry := records.New(), prometheus.NewRegistry()
	a := NewAudit(registry)
	return audited{a.Log(records.NewAuditLog(db)), a.Transactions(fickle{db}), registry}
}

func event(t auth.EventType, success bool, details map[string]any) auth.Event {
	return auth.Event{Type: t, Success: success, Details: details}
}

func session(score int, level auth.TrustLevel) auth.Event {
	return event(auth.RiskEvaluation, true, map[string]any{"riskScore": score, "trustLevel": level.String()})
}

func TestEvents(t *testing.T) {
	stepUp := func(success bool, method auth.StepUpMethod, name, value string) auth.Event {
		return event(auth.StepUpAttempt, success, map[string]any{"method": string(method), name: value})
	}
	const sessions, risk, steps = "tollgate_sessions_started_total ", "tollgate_login_risk_score", "tollgate_step_ups_total "
	for name, c := range map[string]struct {
		event auth.Event
		moves []string
	}{
		"a session":           {session(30, auth.LimitedTrust), []string{sessions + "LIMITED_TRUST", risk}},
		"one at high risk":    {session(100, auth.HighRisk), []string{sessions + "HIGH_RISK", risk}},
		"initiate":            {stepUp(true, auth.EmailOTP, "action", "initiate"), []string{steps + "EMAIL_OTP initiated"}},
		"resend":              {stepUp(true, auth.SMSOTP, "action", "resend"), []string{steps + "SMS_OTP resent"}},
		"verify":              {stepUp(true, auth.AuthenticatorApp, "action", "verify"), []string{steps + "AUTHENTICATOR_APP passed"}},
		"a wrong code":        {stepUp(false, auth.EmailOTP, "reason", "invalid_otp"), []string{steps + "EMAIL_OTP invalid_otp"}},
		"no try left":         {stepUp(false, auth.EmailOTP, "reason", "step_up_attempts_exceeded"), []string{steps + "EMAIL_OTP step_up_attempts_exceeded"}},
		"too late":            {stepUp(false, auth.EmailOTP, "reason", "challenge_closed"), []string{steps + "EMAIL_OTP challenge_closed"}},
		"undelivered":         {stepUp(false, auth.SMSOTP, "reason", "delivery_failed"), []string{steps + "SMS_OTP delivery_failed"}},
		"no method we know":   {stepUp(true, "PIGEON", "action", "verify"), nil},
		"no reason we know":   {stepUp(false, auth.EmailOTP, "reason", "whim"), nil},
		"a lock":              {event(auth.SuspiciousActivity, false, map[string]any{"reason": "account_locked"}), []string{"tollgate_lockouts_total"}},
		"another suspicion":   {event(auth.SuspiciousActivity, false, map[string]any{"reason": "step_up_attempts_exceeded"}), nil},
		"nothing to see here": {event(auth.DeviceChange, true, nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAudited()
			c.event.ID = "a"
			if err := a.log.Append(t.Context(), c.event); err != nil {
				t.Fatal(err)
			}
			moved := map[string]float64{}
			for _, m := range c.moves {
				moved[m] = 1
			}
			want(t, a.registry, moved)
		})
	}
}

// TestEventsOfTransactions checks that events count once if their transaction is committed, and
// otherwise not.
func TestEventsOfTransactions(t *testing.T) {
	a, errUndone := newAudited(), errors.New("undone")
	tell := func(id auth.EventID, end error) func(context.Context) error {
		return func(ctx context.Context) error {
			e := session(10, auth.FullTrust)
			e.ID = id
			if err := a.log.Append(ctx, e); err != nil {
				t.Error(err)
			}
			if n := len(values(t, a.registry)); n > 0 && id == "first" {
				t.Error("an event counts before it is stored")
			}
			return end
		}
	}
	if err := a.transactions.Atomically(t.Context(), tell("first", nil)); err != nil {
		t.Fatal(err)
	}
	stored := map[string]float64{"tollgate_sessions_started_total FULL_TRUST": 1, "tollgate_login_risk_score": 1}
	want(t, a.registry, stored)
	if err := a.transactions.Atomically(t.Context(), tell("second", errUndone)); !errors.Is(err, errUndone) {
		t.Errorf("what is undone: %v", err)
	}
	want(t, a.registry, stored)
	err := a.transactions.Atomically(t.Context(), func(ctx context.Context) error {
		return errors.Join(a.transactions.Atomically(ctx, tell("third", nil)), a.transactions.Atomically(ctx, tell("fourth", nil)))
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, a.registry, map[string]float64{"tollgate_sessions_started_total FULL_TRUST": 3, "tollgate_login_risk_score": 3})
}

// brokenLog stores nothing.
type brokenLog struct{ *records.AuditLog }

func (brokenLog) Append(context.Context, ...auth.Event) error { return errors.New("away") }

func TestEventsThatAreNotStored(t *testing.T) {
	registry := prometheus.NewRegistry()
	log := NewAudit(registry).Log(brokenLog{})
	if err := log.Append(t.Context(), session(10, auth.FullTrust)); err == nil {
		t.Error("the failure is lost")
	}
	want(t, registry, map[string]float64{})
}
