package audit_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

func newTrail() (*audit.Trail, *clocktest.Manual) {
	c := clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC))
	return audit.New(fakedb.NewAuditLog(fakedb.New()), c, &secretstest.Entropy{}), c
}

func mustRecord(t *testing.T, trail *audit.Trail, entries ...audit.Entry) {
	t.Helper()
	if err := trail.Record(context.Background(), entries...); err != nil {
		t.Fatal(err)
	}
}

func TestSearchShowsOnlyTheCallersOwn(t *testing.T) {
	trail, _ := newTrail()
	mustRecord(t, trail, audit.Entry{Type: auth.RiskEvaluation, UserID: "anna"}, audit.Entry{Type: auth.LoginAttempt, UserID: "anna"},
		audit.Entry{Type: auth.LoginAttempt, UserID: "bert"}, audit.Entry{Type: auth.LoginAttempt})
	page, err := trail.Search(context.Background(), "anna", audit.Query{Limit: 1})
	if err != nil || page.Total != 2 || len(page.Events) != 1 || page.Events[0].Type != auth.LoginAttempt {
		t.Errorf("page %+v, error %v; want the later of two", page, err)
	}
	page, err = trail.Search(context.Background(), "anna", audit.Query{Type: auth.RiskEvaluation, Limit: 1000})
	if err != nil || page.Total != 1 {
		t.Errorf("page %+v, error %v; want one", page, err)
	}
}

func TestSearchBounds(t *testing.T) {
	trail, _ := newTrail()
	for _, q := range []audit.Query{{Limit: 0}, {Limit: 1001}, {Limit: -1}, {Limit: 1, Offset: -1}} {
		_, err := trail.Search(context.Background(), "anna", q)
		if f, ok := fault.As(err); !ok || f.Code != auth.CodeValidation {
			t.Errorf("%+v: %v, want validation_error", q, err)
		}
	}
	f, _ := fault.As(audit.Query{Limit: 1001, Offset: -1}.Check())
	if fields, _ := f.Details["fields"].(map[string]string); len(fields) != 2 {
		t.Errorf("names %v, want limit and offset", fields)
	}
}

// TestHabitsNeedFullTrust checks what a session below FULL_TRUST reads of its own events. What is stored
// stays whole.
func TestHabitsNeedFullTrust(t *testing.T) {
	trail, _ := newTrail()
	score := func() map[string]any {
		return map[string]any{"riskScore": 63, "factors": map[string]any{"deviceFamiliarity": 30}, "reasons": map[string]any{"deviceFamiliarity": "new"},
			"history": map[string]any{"pointsScore": 30, "score": 63, "parts": []any{}}}
	}
	mustRecord(t, trail,
		audit.Entry{Type: auth.RiskEvaluation, UserID: "anna", Details: score()},
		audit.Entry{Type: auth.SuspiciousActivity, UserID: "anna", Details: map[string]any{"reason": "high_risk", "riskScore": 63}},
		audit.Entry{Type: auth.LoginAttempt, UserID: "anna", Details: map[string]any{"reason": "invalid_credentials"}})
	whole := []map[string]any{{"reason": "invalid_credentials"}, {"reason": "high_risk", "riskScore": 63}, score()}
	for level, want := range map[auth.TrustLevel][]map[string]any{
		auth.FullTrust: whole,
		auth.LimitedTrust: {
			{"reason": "invalid_credentials"}, {"reason": "high_risk"},
			{"riskScore": 30, "factors": map[string]any{"deviceFamiliarity": 30}},
		},
	} {
		page, err := trail.SearchOwn(context.Background(), auth.Session{UserID: "anna", TrustLevel: level}, audit.Query{Limit: 10})
		if err != nil || len(page.Events) != len(want) {
			t.Fatalf("%d events, error %v", len(page.Events), err)
		}
		for i, e := range page.Events {
			if toJSON(t, e.Details) != toJSON(t, want[i]) {
				t.Errorf("at %s event %d has %v, want %v", level, i, e.Details, want[i])
			}
		}
	}
	page, err := trail.Search(context.Background(), "anna", audit.Query{Limit: 10})
	if err != nil || toJSON(t, page.Events[2].Details) != toJSON(t, whole[2]) {
		t.Errorf("an operator reads %v, error %v", page.Events, err)
	}
}

// toJSON returns details as JSON.
func toJSON(t *testing.T, details map[string]any) string {
	t.Helper()
	text, err := json.Marshal(details)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFailedSignIns(t *testing.T) {
	trail, c := newTrail()
	mustRecord(t, trail, audit.Entry{Type: auth.LoginAttempt, UserID: "anna"})
	c.Advance(10 * time.Minute)
	since := c.Now()
	c.Advance(time.Minute)
	for _, success := range []bool{false, true, false} {
		mustRecord(t, trail, audit.Entry{Type: auth.LoginAttempt, UserID: "anna", Success: success})
	}
	mustRecord(t, trail, audit.Entry{Type: auth.StepUpAttempt, UserID: "anna"}, audit.Entry{Type: auth.LoginAttempt, UserID: "bert"})
	c.Advance(time.Hour) // a clock that is ahead, and then set right
	mustRecord(t, trail, audit.Entry{Type: auth.LoginAttempt, UserID: "anna"})
	c.Advance(-time.Hour)
	if n, err := trail.FailedSignIns(context.Background(), "anna", since); err != nil || n != 2 {
		t.Errorf("%d failures, error %v; want 2", n, err)
	}
}

// TestWalk checks that every matching event is visited once and in order, also if a page ends
// between events of the same time.
func TestWalk(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		log := fakedb.NewAuditLog(fakedb.New())
		c := clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC))
		trail := audit.New(log, c, &secretstest.Entropy{})
		var events []auth.Event
		at := c.Now()
		alike := rapid.SampledFrom([]int{1, 2, 400, 3000}).Draw(r, "alike")
		for n := range rapid.SampledFrom([]int{0, 3, auth.MaxPage, 2*auth.MaxPage + 7}).Draw(r, "events") {
			if n%alike == 0 {
				at = at.Add(-time.Microsecond)
			}
			events = append(events, auth.Event{ID: auth.EventID(fmt.Sprintf("%06d", n)), Time: at, Type: auth.LoginAttempt})
		}
		if err := log.Append(context.Background(), events...); err != nil {
			r.Fatal(err)
		}
		slices.SortFunc(events, func(a, b auth.Event) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.ID, a.ID)) })
		limit := rapid.SampledFrom([]int{0, 1, auth.MaxPage, auth.MaxPage + 1, 5000}).Draw(r, "limit")
		if limit > 0 {
			events = events[:min(limit, len(events))]
		}
		var seen []auth.EventID
		err := trail.Walk(context.Background(), "", audit.Query{Limit: limit}, func(e auth.Event) error {
			seen = append(seen, e.ID)
			return nil
		})
		if err != nil || len(seen) != len(events) {
			r.Fatalf("%d events seen of %d, error %v", len(seen), len(events), err)
		}
		for i, e := range events {
			if seen[i] != e.ID {
				r.Fatalf("event %d is %s, want %s", i, seen[i], e.ID)
			}
		}
	})
}

func TestWalkEnds(t *testing.T) {
	trail, c := newTrail()
	for range 3 {
		mustRecord(t, trail, audit.Entry{Type: auth.LoginAttempt, UserID: "anna"}, audit.Entry{Type: auth.RiskEvaluation, UserID: "bert"})
		c.Advance(time.Second)
	}
	stop, calls := errors.New("stop"), 0
	err := trail.Walk(context.Background(), "anna", audit.Query{Type: auth.LoginAttempt}, func(e auth.Event) error {
		if e.UserID != "anna" || e.Type != auth.LoginAttempt {
			t.Errorf("event %+v", e)
		}
		if calls == 0 {
			mustRecord(t, trail, audit.Entry{Type: auth.LoginAttempt, UserID: "anna"})
		}
		if calls++; calls == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || calls != 2 {
		t.Errorf("error %v after %d calls", err, calls)
	}
}

// TestBy: what a person does as an operator has the person as the actor, and other entries keep theirs.
func TestBy(t *testing.T) {
	trail, _ := newTrail()
	details := map[string]any{audit.Actor: audit.Operator, "action": "lock"}
	ctx := audit.By(context.Background(), "bea")
	for _, entry := range []audit.Entry{
		{Type: auth.AccountChange, UserID: "anna", Details: details},
		{Type: auth.AccountChange, UserID: "anna", Details: map[string]any{"action": "x"}},
		{Type: auth.AccountChange, UserID: "anna"},
	} {
		if err := trail.Record(ctx, entry); err != nil {
			t.Fatal(err)
		}
	}
	mustRecord(t, trail, audit.Entry{Type: auth.AccountChange, UserID: "anna", Details: details})
	page, err := trail.Search(context.Background(), "anna", audit.Query{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[any]int{}
	for _, e := range page.Events {
		counts[e.Details[audit.Actor]]++
	}
	if counts["bea"] != 1 || counts[audit.Operator] != 1 || counts[nil] != 2 || details[audit.Actor] != audit.Operator {
		t.Errorf("the actors are %v", counts)
	}
}
