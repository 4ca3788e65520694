package auditing_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

type testEntropy struct{}

func (testEntropy) Fill(p []byte) { _, _ = rand.Read(p) } // never fails

func newTrail() (*auditing.Trail, *clocktest.Manual) {
	c := clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC))
	return auditing.New(fakedb.NewAuditLog(fakedb.New()), c, testEntropy{}), c
}

func mustRecord(t *testing.T, trail *auditing.Trail, entries ...audit.Change) {
	t.Helper()
	must.Succeed(t, trail.RecordChanges(context.Background(), entries...))
}

func TestSearchShowsOnlyTheCallersOwn(t *testing.T) {
	trail, _ := newTrail()
	mustRecord(t, trail, audit.Change{Category: audit.RiskEvaluation, Subject: "anna"}, audit.Change{
		Category: audit.LoginAttempt, Subject: "anna",
	},
		audit.Change{Category: audit.LoginAttempt, Subject: "bert"}, audit.Change{Category: audit.LoginAttempt})
	page, err := trail.Search(context.Background(), "anna", auditing.Query{Limit: 1})
	if err != nil || page.Total != 2 || len(page.Events) != 1 || page.Events[0].Category != audit.LoginAttempt {
		t.Errorf("page %+v, error %v; want the later of two", page, err)
	}
	page, err = trail.Search(context.Background(), "anna", auditing.Query{Category: audit.RiskEvaluation, Limit: 1000})
	if err != nil || page.Total != 1 {
		t.Errorf("page %+v, error %v; want one", page, err)
	}
}

func TestSearchBounds(t *testing.T) {
	trail, _ := newTrail()
	for _, q := range []auditing.Query{{Limit: 0}, {Limit: 1001}, {Limit: -1}, {Limit: 1, Offset: -1}} {
		_, err := trail.Search(context.Background(), "anna", q)
		if f, ok := fault.As(err); !ok || f.Code != auth.CodeValidation {
			t.Errorf("%+v: %v, want validation_error", q, err)
		}
	}
	f, _ := fault.As(auditing.Query{Limit: 1001, Offset: -1}.Check())
	if fields := f.Details.Inner("fields"); len(fields) != 2 {
		t.Errorf("names %v, want limit and offset", fields)
	}
}

// TestHabitsNeedFullTrust checks what a session below FULL_TRUST reads of its own events. What is
// stored stays whole.
func TestHabitsNeedFullTrust(t *testing.T) {
	trail, _ := newTrail()
	score := func() audit.Details {
		return audit.Details{"riskScore": audit.Number(63), "factors": audit.Details{
			"deviceFamiliarity": audit.Number(30),
		}, "reasons": audit.Details{"deviceFamiliarity": audit.Text("new")},
			"history": audit.Details{"pointsScore": audit.Number(30), "score": audit.Number(63), "parts": audit.List{}}}
	}
	mustRecord(t, trail,
		audit.Change{Category: audit.RiskEvaluation, Subject: "anna", Details: score()},
		audit.Change{
			Category: audit.SuspiciousActivity, Subject: "anna", Details: audit.Details{
				"reason": audit.Text("high_risk"), "riskScore": audit.Number(63),
			},
		},
		audit.Change{
			Category: audit.LoginAttempt, Subject: "anna", Details: audit.Details{
				"reason": audit.Text("invalid_credentials"),
			},
		})
	whole := []audit.Details{
		{"reason": audit.Text("invalid_credentials")}, {
			"reason": audit.Text("high_risk"), "riskScore": audit.Number(63),
		}, score(),
	}
	for level, want := range map[auth.TrustLevel][]audit.Details{
		auth.FullTrust: whole,
		auth.LimitedTrust: {
			{"reason": audit.Text("invalid_credentials")}, {"reason": audit.Text("high_risk")},
			{"riskScore": audit.Number(30), "factors": audit.Details{"deviceFamiliarity": audit.Number(30)}},
		},
	} {
		page, err := trail.SearchOwn(context.Background(), auth.Session{UserID: "anna", TrustLevel: level},
			auditing.Query{Limit: 10})
		if err != nil || len(page.Events) != len(want) {
			t.Fatalf("%d events, error %v", len(page.Events), err)
		}
		for i, e := range page.Events {
			if toJSON(t, e.Details) != toJSON(t, want[i]) {
				t.Errorf("at %s event %d has %v, want %v", level, i, e.Details, want[i])
			}
		}
	}
	page, err := trail.Search(context.Background(), "anna", auditing.Query{Limit: 10})
	if err != nil || toJSON(t, page.Events[2].Details) != toJSON(t, whole[2]) {
		t.Errorf("an operator reads %v, error %v", page.Events, err)
	}
}

// toJSON returns details as JSON.
func toJSON(t *testing.T, details audit.Details) string {
	t.Helper()
	text, err := json.Marshal(details)
	must.Succeed(t, err)
	return string(text)
}

// TestActorOfOperators checks that the events of operators name who acted: a person by the context,
// or the operator commands; and that the events of others name no one.
func TestActorOfOperators(t *testing.T) {
	trail, _ := newTrail()
	details := audit.Details{"policy": audit.Text("p")}
	for _, ctx := range []context.Context{t.Context(), auditing.By(t.Context(), audit.Actor{Who: "person:anna"})} {
		err := trail.RecordChanges(ctx, audit.Change{
			Category: audit.AccountChange, Action: "publisher_add", ByOperator: true, Details: details,
		},
			audit.Change{Category: audit.AccountChange, Action: "publisher_add", Subject: "bert", Details: details})
		must.Succeed(t, err)
	}
	page, err := trail.Search(t.Context(), "bert", auditing.Query{Limit: 10})
	if err != nil || page.Total != 2 || toJSON(t, page.Events[0].Details) != `{"action":"publisher_add","policy":"p"}` {
		t.Errorf("the events of bert are %+v, error %v; want two without an actor", page, err)
	}
	var actors []string
	all, err := trail.Search(t.Context(), "", auditing.Query{Limit: 10})
	for _, e := range all.Events {
		if e.Subject == "" && e.Success && e.Action() == "publisher_add" {
			actors = append(actors, e.Details.Text("actor"))
		}
	}
	slices.Sort(actors) // the events have one time
	if err != nil || !slices.Equal(actors, []string{"operator", "person:anna"}) || len(details) != 1 {
		t.Errorf("the actors are %q, error %v, details %v", actors, err, details)
	}
}

func TestFailedSignIns(t *testing.T) {
	trail, c := newTrail()
	mustRecord(t, trail, audit.Change{Category: audit.LoginAttempt, Subject: "anna"})
	c.Advance(10 * time.Minute)
	since := c.Now()
	c.Advance(time.Minute)
	for _, success := range []bool{false, true, false} {
		mustRecord(t, trail, audit.Change{Category: audit.LoginAttempt, Subject: "anna", Failed: !success})
	}
	mustRecord(t, trail, audit.Change{Category: audit.StepUpAttempt, Subject: "anna"}, audit.Change{
		Category: audit.LoginAttempt, Subject: "bert",
	})
	c.Advance(time.Hour) // a clock that is ahead, and then set right
	mustRecord(t, trail, audit.Change{Category: audit.LoginAttempt, Subject: "anna"})
	c.Advance(-time.Hour)
	if n, err := trail.FailedSignIns(context.Background(), "anna", since); err != nil || n != 2 {
		t.Errorf("%d failures, error %v; want 2", n, err)
	}
}
