package auditing_test

import (
	"context"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestIsDue checks that each quarter a right is asked about again, also one of which nothing is known.
func TestIsDue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	recent := now.AddDate(0, 0, -90)
	old := recent.Add(-time.Second)
	for _, c := range []struct {
		given, confirmed time.Time
		want             bool
	}{
		{time.Time{}, time.Time{}, true}, {old, time.Time{}, true}, {old, old, true}, {old, recent, false}, {recent, time.Time{}, false},
		{time.Time{}, recent, false},
	} {
		h := auditing.GrantHistory{Given: audit.Event{Time: c.given}, Confirmed: audit.Event{Time: c.confirmed}}
		if got := h.IsDue(now); got != c.want {
			t.Errorf("given %s, confirmed %s: %v", c.given, c.confirmed, got)
		}
	}
}

// entries is a log that counts entries of today and of the days before.
type entries struct {
	authstore.AuditLog

	now           time.Time
	today, before int
}

func (e entries) Search(_ context.Context, q authstore.AuditQuery) ([]audit.Event, int, error) {
	if q.Before.Equal(e.now) {
		return nil, e.today, nil
	}
	return nil, e.before, nil
}

// TestDenied checks when denied calls rose: they are not few, and twice those of the day before.
func TestDenied(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		today, before int
		want          bool
	}{{19, 0, false}, {20, 0, true}, {20, 10, true}, {20, 11, false}, {3000, 500, true}, {3000, 2000, false}} {
		denied, err := auditing.New(entries{now: now, today: c.today, before: c.before}, nil, nil).Denied(t.Context(), now)
		must.Succeed(t, err)
		if denied.Rose() != c.want {
			t.Errorf("%d after %d: %v", c.today, c.before, denied)
		}
	}
}

// grantEvents is a log with changes of grants.
type grantEvents struct {
	authstore.AuditLog

	all []audit.Event
}

func (e grantEvents) Search(context.Context, authstore.AuditQuery) ([]audit.Event, int, error) {
	return e.all, len(e.all), nil
}

// TestGrants checks that the newest event of a grant counts, also of a service account, and that of no other grant.
func TestGrants(t *testing.T) {
	t.Parallel()
	event := func(hour int, action audit.Action, holder, pattern string) audit.Event {
		at := time.Date(2026, 12, 1, hour, 0, 0, 0, time.UTC)
		return audit.NewEvent("id", at, audit.Change{Category: audit.AccountChange, Action: action, Details: audit.Details{
			"userId": audit.Text(holder), "grant": audit.Text("review"), "resource": audit.Text(pattern),
		}}, audit.Actor{})
	}
	all := []audit.Event{event(3, "grant_confirm", "u", "a/*"), event(2, "grant_add", "u", "a/*"), event(1, "grant_add", "u", "a/*"), event(1, "grant_add", "ci", "b/*")}
	found, err := auditing.New(grantEvents{all: all}, nil, nil).Grants(t.Context())
	must.Succeed(t, err)
	if h := found.Of("u", "review", "a/*"); h.Given.Time.Hour() != 2 || h.Confirmed.Time.Hour() != 3 {
		t.Errorf("the history is %+v", h)
	}
	if h := found.Of("service:ci", "review", "b/*"); h.Given.Time.IsZero() || !h.Confirmed.Time.IsZero() {
		t.Errorf("the history of the service account is %+v", h)
	}
	if h := found.Of("u", "review", "c/*"); !h.Given.Time.IsZero() {
		t.Errorf("the history of another grant is %+v", h)
	}
}
