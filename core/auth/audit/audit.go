// Package audit writes events to the audit log and searches it on behalf of a person. Which act leaves which event is decided
// where the act is.
package audit

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Entry is what a use case has to tell. Its details never hold a password, code or token.
type Entry struct {
	Type    auth.EventType
	UserID  auth.UserID // empty where no account is concerned
	Success bool
	Details map[string]any
}

// The detail that names who acted, where it was not the person of the event.
const (
	Actor    = "actor"
	Operator = "operator" // by an operator command
)

// Trail is the audit log as the use cases see it. It is safe for concurrent use.
type Trail struct {
	log     authstore.AuditLog
	clock   clock.Clock
	entropy secrets.Entropy
}

// New returns a trail that writes to the log.
func New(log authstore.AuditLog, c clock.Clock, e secrets.Entropy) *Trail {
	return &Trail{log: log, clock: c, entropy: e}
}

// Record appends entries, in the transaction that the context carries, if any. Entries of one call keep their order in time.
func (t *Trail) Record(ctx context.Context, entries ...Entry) error {
	now := t.clock.Now().UTC()
	events := make([]auth.Event, len(entries))
	for i, e := range entries {
		events[i] = auth.Event{
			ID: secrets.NewUUID[auth.EventID](t.entropy), Time: now.Add(time.Duration(i) * time.Microsecond),
			Type: e.Type, UserID: e.UserID, Success: e.Success, Details: e.Details,
		}
	}
	return t.log.Append(ctx, events...)
}

// Query selects events. Zero fields do not narrow it.
type Query struct {
	Type   auth.EventType
	After  time.Time // strictly after
	Before time.Time // strictly before
	Limit  int       // 1 to auth.MaxPage
	Offset int       // 0 and more
}

// Check returns the error of auth.PageRequest.Validate for the page that the query selects.
func (q Query) Check() error {
	return auth.PageRequest{Limit: q.Limit, Offset: q.Offset}.Validate()
}

// Page is one page of what matches a query.
type Page struct {
	Events []auth.Event // newest first
	Total  int          // of all matches
}

// Search returns the person's events. What Check refuses is refused.
func (t *Trail) Search(ctx context.Context, user auth.UserID, q Query) (Page, error) {
	if err := q.Check(); err != nil {
		return Page{}, err
	}
	events, total, err := t.log.Search(ctx, authstore.AuditQuery{
		UserID: user, Type: q.Type, After: q.After, Before: q.Before, Limit: q.Limit, Offset: q.Offset,
	})
	if err != nil {
		return Page{}, err
	}
	return Page{Events: events, Total: total}, nil
}

// Walk calls visit with the events that match the query, newest first, until there are no more, there were Limit of them (0: all)
// or visit fails, whose error it returns. The person of an empty id is everybody, and no person. Events that are recorded meanwhile
// are left out or not, but none comes twice.
func (t *Trail) Walk(ctx context.Context, user auth.UserID, q Query, visit func(auth.Event) error) error {
	next := authstore.AuditQuery{UserID: user, Type: q.Type, After: q.After, Before: q.Before, Uncounted: true}
	if next.Before.IsZero() {
		next.Before = t.clock.Now().Add(ClockSkew)
	}
	for visited := 0; q.Limit == 0 || visited < q.Limit; {
		next.Limit = auth.MaxPage
		if q.Limit > 0 {
			next.Limit = min(q.Limit-visited, auth.MaxPage)
		}
		events, _, err := t.log.Search(ctx, next)
		if err != nil {
			return err
		}
		for i := range events {
			if err := visit(events[i]); err != nil {
				return err
			}
		}
		if len(events) < next.Limit {
			return nil
		}
		visited += len(events)
		next = behind(next, events)
	}
	return nil
}

// ClockSkew is the most by which the clocks of two instances may differ: an event of an instance
// whose clock is further ahead is not seen yet, and one whose clock is further behind is listed but
// may not be counted.
const ClockSkew = time.Hour

// behind returns the query of what follows a page. Events are stored to the microsecond; of those at the time of the last one, as
// many are skipped as were seen.
func behind(q authstore.AuditQuery, page []auth.Event) authstore.AuditQuery {
	edge := page[len(page)-1].Time.Add(time.Microsecond)
	seen := 0
	for i := range page {
		if page[i].Time.Add(time.Microsecond).Equal(edge) {
			seen++
		}
	}
	if edge.Equal(q.Before) {
		seen += q.Offset // the page was full of events of one time, and not the first of them
	}
	q.Before, q.Offset = edge, seen
	return q
}

// recent is how many sign-ins FailedSignIns looks at. More failures than that are too many by any bound.
const recent = 200

// FailedSignIns counts the person's failed sign-ins after a time, up to 200. What a clock that was ahead has recorded does not
// count until its time has come.
func (t *Trail) FailedSignIns(ctx context.Context, user auth.UserID, after time.Time) (int, error) {
	events, _, err := t.log.Search(ctx, authstore.AuditQuery{
		UserID: user, Type: auth.LoginAttempt, After: after, Before: t.clock.Now().Add(auth.ClockTolerance), Limit: recent,
	})
	if err != nil {
		return 0, err
	}
	failed := 0
	for i := range events {
		if !events[i].Success {
			failed++
		}
	}
	return failed, nil
}
