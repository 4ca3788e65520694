// Package auditing writes events to the audit log and searches it for a person. The use cases
// decide which events they write.
package auditing

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

type actorKey struct{}

// By returns a context for what an actor does: the changes of operators that Trail records with it
// name the actor, and not the local operator commands.
func By(ctx context.Context, a audit.Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns the actor of a context; the zero value for local operator commands.
func ActorOf(ctx context.Context) audit.Actor {
	by, _ := ctx.Value(actorKey{}).(audit.Actor)
	return by
}

// ByPerson is By for a person without a session, who acts with a link.
func ByPerson(ctx context.Context, id auth.UserID) context.Context {
	return By(ctx, audit.Actor{Who: audit.PersonActor + string(id)})
}

// Trail writes and reads the audit log for the use cases. It is safe for concurrent use.
type Trail struct {
	log     authstore.AuditLog
	clock   clock.Clock
	entropy secrets.Entropy
}

// New returns a trail that writes to the log.
func New(log authstore.AuditLog, c clock.Clock, e secrets.Entropy) *Trail {
	return &Trail{log: log, clock: c, entropy: e}
}

// RecordChanges appends changes to the audit log, in the transaction of the context, if any. The
// events of one call keep their order in time. It implements authority.Recorder.
func (t *Trail) RecordChanges(ctx context.Context, changes ...audit.Change) error {
	now := t.clock.Now().UTC()
	by := ActorOf(ctx)
	events := make([]audit.Event, len(changes))
	for i, c := range changes {
		id := c.ID
		if id == "" {
			id = secrets.NewUUID[audit.EventID](t.entropy)
		}
		events[i] = audit.NewEvent(id, now.Add(time.Duration(i)*time.Microsecond), c, by)
	}
	return t.log.Append(ctx, events...)
}

// Query selects events. Zero fields do not narrow it.
type Query struct {
	ID       audit.EventID
	Category audit.Category
	Server   string    // by its whole name
	Run      string    // the parts of a run of audit.Event.Run
	Whole    bool      // without the parts of runs
	Success  *bool     // nil selects both outcomes
	After    time.Time // strictly after
	Before   time.Time // strictly before
	Limit    int       // 1 to auth.MaxPage
	Offset   int       // 0 and more
	// Most, if it is not 0, is where Page.Total may end: it is then greater than Most, and leaves
	// room for a further page if there is one.
	Most int
}

// Check returns the error of auth.PageRequest.Validate for the page that the query selects.
func (q Query) Check() error {
	return auth.PageRequest{Limit: q.Limit, Offset: q.Offset}.Validate()
}

// Page is one page of the events that match a query.
type Page struct {
	Events []audit.Event // newest first
	Total  int           // of all matches, or more than Query.Most
}

// Search returns a page of the person's events. It returns the error of Query.Check for a query out
// of range.
func (t *Trail) Search(ctx context.Context, user auth.UserID, q Query) (Page, error) {
	if err := q.Check(); err != nil {
		return Page{}, err
	}
	events, total, err := t.log.Search(ctx, authstore.AuditQuery{
		Subject: audit.Subject(user), ID: q.ID, Category: q.Category, Server: q.Server, Run: q.Run, Whole: q.Whole,
		Success: q.Success, After: q.After, Before: q.Before, Limit: q.Limit, Offset: q.Offset, Most: q.Most,
	})
	if err != nil {
		return Page{}, err
	}
	return Page{Events: events, Total: total}, nil
}

// SearchOwn returns a page of the events of the caller, without what the caller must not read: see
// risk.WithoutHabits. The error is that of Search.
func (t *Trail) SearchOwn(ctx context.Context, caller auth.Session, q Query) (Page, error) {
	page, err := t.Search(ctx, caller.UserID, q)
	if err != nil || caller.TrustLevel.Admits(auth.FullTrust) {
		return page, err
	}
	for i := range page.Events {
		page.Events[i] = risk.WithoutHabits(page.Events[i])
	}
	return page, nil
}

// maxOfServer is how many events OfServer reads, the newest ones.
const maxOfServer = 100

// OfServer returns the latest part of the history of a server.
func (t *Trail) OfServer(ctx context.Context, name string) (audit.ServerHistory, error) {
	events, _, err := t.log.Search(ctx, authstore.AuditQuery{
		Category: audit.RegistryChange, Server: name, Limit: maxOfServer, Uncounted: true,
	})
	return audit.NewServerHistory(events), err
}

// ClockSkew is the greatest difference between the clocks of two instances. Events of a clock that
// is further ahead are not visible yet, and those of a clock that lags further are listed but may
// not be counted.
const ClockSkew = time.Hour

// maxSignIns is the number of sign-ins that FailedSignIns reads. It is greater than any
// configurable bound.
const maxSignIns = 200

// FailedSignIns returns the number of the person's failed sign-ins after a time, up to 200. Events
// with a time in the future, from an instance whose clock was ahead, do not count yet.
func (t *Trail) FailedSignIns(ctx context.Context, user auth.UserID, after time.Time) (int, error) {
	events, _, err := t.log.Search(ctx, authstore.AuditQuery{
		Subject: audit.Subject(user), Category: audit.LoginAttempt, After: after,
		Before: t.clock.Now().Add(auth.ClockTolerance), Limit: maxSignIns,
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
