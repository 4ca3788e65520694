package audit_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
)

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

type dice struct{}

func (dice) Fill(p []byte) { _, _ = rand.Read(p) } // never fails

func newTrail() (*audit.Trail, *clock) {
	c := &clock{time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)}
	return audit.New(records.NewAuditLog(records.New()), c, dice{}), c
}

func record(t *testing.T, trail *audit.Trail, entries ...audit.Entry) {
	t.Helper()
	if err := trail.Record(context.Background(), entries...); err != nil {
		t.Fatal(err)
	}
}

func TestSearchShowsOnlyTheCallersOwn(t *testing.T) {
	trail, _ := newTrail()
	record(t, trail, audit.Entry{Type: auth.RiskEvaluation, UserID: "anna"}, audit.Entry{Type: auth.LoginAttempt, UserID: "anna"},
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
}

func TestFailedSignIns(t *testing.T) {
	trail, c := newTrail()
	record(t, trail, audit.Entry{Type: auth.LoginAttempt, UserID: "anna"})
	c.now = c.now.Add(10 * time.Minute)
	since := c.now
	c.now = c.now.Add(time.Minute)
	for _, success := range []bool{false, true, false} {
		record(t, trail, audit.Entry{Type: auth.LoginAttempt, UserID: "anna", Success: success})
	}
	record(t, trail, audit.Entry{Type: auth.StepUpAttempt, UserID: "anna"}, audit.Entry{Type: auth.LoginAttempt, UserID: "bert"})
	if n, err := trail.FailedSignIns(context.Background(), "anna", since); err != nil || n != 2 {
		t.Errorf("%d failures, error %v; want 2", n, err)
	}
}
