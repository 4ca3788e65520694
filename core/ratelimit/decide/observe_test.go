package decide_test

import (
	"context"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// lastDecision keeps the last decision that it observes.
type lastDecision struct {
	code     ratelimit.Code
	findings []decide.Finding
}

func (l *lastDecision) Decided(_ context.Context, _ *ratelimit.Request, c ratelimit.Code, findings []decide.Finding) {
	l.code, l.findings = c, slices.Clone(findings)
}

func (l *lastDecision) observe(_ *decide.Config, p *decide.Ports) { p.Observe = l.Decided }

func (l *lastDecision) onlyFinding(t *testing.T) decide.Finding {
	t.Helper()
	if len(l.findings) != 1 {
		t.Fatalf("%d findings, want 1", len(l.findings))
	}
	return l.findings[0]
}

func TestObserverReceivesCounts(t *testing.T) {
	var l lastDecision
	b := newFixture(t, l.observe, keyRule("k", perMinute(1)), keyRule("free", &ruleset.Limit{Unlimited: true}))
	for i, want := range []ratelimit.Code{ok, over} {
		b.mustDecide(t, newRequest("k=v"))
		f := l.onlyFinding(t)
		if l.code != want || f.Status.Code != want || f.Source != decide.FromStore || f.Count != uint64(i+1) ||
			f.Hits != 1 {
			t.Errorf("call %d: %d %+v", i, l.code, f)
		}
		if f.Rule != b.onlyRule() || f.Key != b.store.hits[i].Key || f.Miss != (ruleset.Miss{}) {
			t.Errorf("call %d: %+v", i, f)
		}
	}
	b.mustDecide(t, newRequest("free=v"))
	if f := l.onlyFinding(t); f.Source != decide.FromRule || !f.Rule.Unlimited || f.Key != "" {
		t.Errorf("unlimited: %+v", f)
	}
}

func TestObserverReceivesMisses(t *testing.T) {
	var l lastDecision
	b := newFixture(t, l.observe, keyRule("k", perMinute(1)), keyRule("a", withName(perMinute(1), "usual")),
		keyRule("b", withName(perMinute(1), "", "usual")))
	b.mustDecide(t, newRequest("x=v", "k=v,x=y", "a=1", "b=1"))
	for i, want := range []ruleset.Miss{{Reason: ruleset.UnknownKey}, {Reason: ruleset.TooDeep, Level: 1}, {}, {}} {
		if f := l.findings[i]; f.Miss != want || f.Replaced != (i == 2) {
			t.Errorf("descriptor %d: %+v, want %+v", i, f, want)
		}
	}
	own := newRequest("x=v")
	own.Descriptors[0].Override = &ratelimit.Limit{RequestsPerUnit: 3, Unit: ratelimit.Hour}
	b.mustDecide(t, own)
	if f := l.onlyFinding(t); f.Miss != (ruleset.Miss{}) || f.Rule != nil || f.Source != decide.FromStore {
		t.Errorf("an override: %+v", f)
	}
	own.Domain = "unknown"
	b.mustDecide(t, own)
	if f := l.onlyFinding(t); f.Miss.Reason != ruleset.UnknownDomain || f.Source != decide.FromRule {
		t.Errorf("an override in an unknown domain: %+v", f)
	}
}

func TestObserverReceivesSources(t *testing.T) {
	var l lastDecision
	r := newCachedFixture(t, l.observe, keyRule("k", perMinute(1)))
	for _, want := range []decide.Source{decide.FromStore, decide.FromStore, decide.FromMemory} {
		r.mustDecide(t, newRequest("k=v"))
		wantEqual(t, l.onlyFinding(t).Source, want, "source")
	}
	for _, mode := range []decide.FailureMode{decide.FailOpen, decide.FailClosed} {
		b := newFixture(t, func(c *decide.Config, p *decide.Ports) {
			c.FailureMode, p.Counters, p.Observe = mode, failingStore{}, l.Decided
		}, keyRule("k", perMinute(1)))
		b.mustDecide(t, newRequest("k=v"))
		if f := l.onlyFinding(t); f.Source != decide.FromFailureMode {
			t.Errorf("failure mode %d: %+v", mode, f)
		}
	}
}
