package decide_test

import (
	"context"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// listener keeps what an observer is told of the last decision.
type listener struct {
	code     ratelimit.Code
	findings []decide.Finding
}

func (l *listener) Decided(_ context.Context, _ *ratelimit.Request, c ratelimit.Code, findings []decide.Finding) {
	l.code, l.findings = c, slices.Clone(findings)
}

func (l *listener) listen(_ *decide.Config, p *decide.Ports) { p.Observer = l }

func (l *listener) one(t *testing.T) decide.Finding {
	t.Helper()
	if len(l.findings) != 1 {
		t.Fatalf("%d findings, want 1", len(l.findings))
	}
	return l.findings[0]
}

func TestObserverIsToldOfCounts(t *testing.T) {
	var l listener
	b := open(t, l.listen, on("k", perMinute(1)), on("free", &ruleset.Limit{Unlimited: true}))
	for i, want := range []ratelimit.Code{ok, over} {
		b.must(t, ask("k=v"))
		f := l.one(t)
		if l.code != want || f.Status.Code != want || f.Source != decide.FromStore || f.Count != uint64(i+1) || f.Hits != 1 {
			t.Errorf("call %d: %d %+v", i, l.code, f)
		}
		if f.Rule != b.only() || f.Key != b.store.hits[i].Key || f.Miss != (ruleset.Miss{}) {
			t.Errorf("call %d: %+v", i, f)
		}
	}
	b.must(t, ask("free=v"))
	if f := l.one(t); f.Source != decide.FromRule || !f.Rule.Unlimited || f.Key != "" {
		t.Errorf("unlimited: %+v", f)
	}
}

func TestObserverIsToldWhyThereIsNoRule(t *testing.T) {
	var l listener
	b := open(t, l.listen, on("k", perMinute(1)), on("a", named(perMinute(1), "usual")), on("b", named(perMinute(1), "", "usual")))
	b.must(t, ask("x=v", "k=v,x=y", "a=1", "b=1"))
	for i, want := range []ruleset.Miss{{Reason: ruleset.UnknownKey}, {Reason: ruleset.TooDeep, Level: 1}, {}, {}} {
		if f := l.findings[i]; f.Miss != want || f.Replaced != (i == 2) {
			t.Errorf("descriptor %d: %+v, want %+v", i, f, want)
		}
	}
	own := ask("x=v")
	own.Descriptors[0].Override = &ratelimit.Limit{RequestsPerUnit: 3, Unit: ratelimit.Hour}
	b.must(t, own)
	if f := l.one(t); f.Miss != (ruleset.Miss{}) || f.Rule != nil || f.Source != decide.FromStore {
		t.Errorf("an override: %+v", f)
	}
	own.Domain = "unknown"
	b.must(t, own)
	if f := l.one(t); f.Miss.Reason != ruleset.UnknownDomain || f.Source != decide.FromRule {
		t.Errorf("an override in an unknown domain: %+v", f)
	}
}

func TestObserverIsToldWhatAnswered(t *testing.T) {
	var l listener
	r := remember(t, l.listen, on("k", perMinute(1)))
	for _, want := range []decide.Source{decide.FromStore, decide.FromStore, decide.FromMemory} {
		r.must(t, ask("k=v"))
		if got := l.one(t).Source; got != want {
			t.Errorf("source %d, want %d", got, want)
		}
	}
	for _, mode := range []decide.FailureMode{decide.FailOpen, decide.FailClosed} {
		b := open(t, func(c *decide.Config, p *decide.Ports) {
			c.FailureMode, p.Counters, p.Observer = mode, broken{}, &l
		}, on("k", perMinute(1)))
		b.must(t, ask("k=v"))
		if f := l.one(t); f.Source != decide.FromFailureMode {
			t.Errorf("failure mode %d: %+v", mode, f)
		}
	}
}
