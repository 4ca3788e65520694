package tokens_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/tokens"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const anna auth.Owner = "anna"

var noon = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

type fixture struct {
	*tokens.Service
	store *fakedb.APITokens
	log   *fakedb.AuditLog
	clock *clocktest.Manual
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, clock, entropy := fakedb.New(), clocktest.NewManual(noon), &secretstest.Entropy{}
	for _, id := range []auth.UserID{"anna", "ben"} {
		err := fakedb.NewAccounts(db).Create(t.Context(), auth.Account{
			ID: id, Email: auth.Email(id), State: auth.AccountActive,
		})
		must.Succeed(t, err)
	}
	fx := &fixture{store: fakedb.NewAPITokens(db), log: fakedb.NewAuditLog(db), clock: clock}
	fx.Service = tokens.New(tokens.Ports{
		Transaction: db, Tokens: fx.store, Trail: auditing.New(fx.log, clock, entropy), Clock: clock, Entropy: entropy,
	})
	return fx
}

func (fx *fixture) add(t *testing.T, owner auth.Owner) (auth.APIToken, auth.APISecret) {
	t.Helper()
	draft, err := fx.Parse(auth.APITokenDraft{Name: "deploy", Scopes: []string{"decide"}})
	must.Succeed(t, err)
	token, secret, err := fx.Add(t.Context(), owner, owner, draft)
	must.Succeed(t, err)
	return token, secret
}

// TestTokensAreAddedAndRemoved checks that a token is found by its secret alone until it is removed,
// and that the events, in the log of its owner, do not have the secret.
func TestTokensAreAddedAndRemoved(t *testing.T) {
	fx := newFixture(t)
	token, secret := fx.add(t, anna)
	if found, err := fx.store.Find(t.Context(), auth.HashSecret(secret)); err != nil || found.ID != token.ID ||
		found.CreatedBy != anna {
		t.Fatalf("Find = %+v, %v", found, err)
	}
	if list, err := fx.List(t.Context(), anna, "", 9); err != nil || len(list) != 1 {
		t.Errorf("List = %+v, %v", list, err)
	}
	if err := fx.Remove(t.Context(), "ben", token.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("Remove by another person: %v", err)
	}
	fx.clock.Advance(time.Second)
	must.Succeed(t, fx.Remove(t.Context(), anna, token.ID))
	if err := fx.Remove(t.Context(), anna, token.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("Remove of no token: %v", err)
	}
	events, _, err := fx.log.Search(t.Context(), authstore.AuditQuery{Subject: "anna", Limit: 9})
	if err != nil || len(events) != 2 {
		t.Fatalf("the events are %+v, %v", events, err)
	}
	for i, want := range []string{"token_remove", "token_add"} {
		if e := events[i]; string(e.Action()) != want || e.Details.Text("token") != token.Prefix ||
			e.Details.Text("key") != string(token.ID) {
			t.Errorf("the event is %+v, want %s", e, want)
		}
		for _, value := range events[i].Details {
			if strings.Contains(fmt.Sprint(value), string(secret[12:])) {
				t.Errorf("the event %+v has the secret", events[i])
			}
		}
	}
}

// TestTooManyTokens checks that the token over the number is refused without an event.
func TestTooManyTokens(t *testing.T) {
	fx := newFixture(t)
	for range anna.MaxTokens() {
		fx.add(t, anna)
	}
	draft, err := fx.Parse(auth.APITokenDraft{Name: "x", Scopes: []string{"decide"}})
	must.Succeed(t, err)
	if _, _, err := fx.Add(t.Context(), anna, anna, draft); !fault.Is(err, fault.Conflict) {
		t.Errorf("one too many: %v", err)
	}
	if _, total, err := fx.log.Search(t.Context(), authstore.AuditQuery{Limit: 1}); total != anna.MaxTokens() {
		t.Errorf("%d events, %v", total, err)
	}
	fx.clock.Advance(91 * 24 * time.Hour) // they have expired
	fx.add(t, anna)
}

// racingExpiry lets another instance announce each token first.
type racingExpiry struct {
	*fakedb.APITokens
	race bool
}

func (r racingExpiry) MoveNotice(ctx context.Context, id auth.APITokenID, from, to time.Time) error {
	if r.race {
		if err := r.APITokens.MoveNotice(ctx, id, from, to); err != nil {
			return err
		}
	}
	return r.APITokens.MoveNotice(ctx, id, from, to)
}

// TestReminder checks that each notice is marked once, in its time, also if another instance does.
func TestReminder(t *testing.T) {
	fx := newFixture(t)
	token, _ := fx.add(t, anna)
	var marked []time.Time
	for day := range 90 {
		r := tokens.NewReminder(tokens.ReminderPorts{Expiry: racingExpiry{fx.store, day%2 == 0}, Clock: fx.clock})
		must.Succeed(t, r.NotifyAll(t.Context()))
		list, err := fx.List(t.Context(), anna, "", 1)
		must.Succeed(t, err)
		if at := list[0].NoticeAt; !at.Equal(token.NoticeAt) {
			marked, token.NoticeAt = append(marked, fx.clock.Now()), at
		}
		fx.clock.Advance(24 * time.Hour)
	}
	want := []time.Time{noon.AddDate(0, 0, 76), noon.AddDate(0, 0, 88)}
	if !slices.EqualFunc(marked, want, time.Time.Equal) || !token.NoticeAt.IsZero() {
		t.Errorf("notices at %v and %v, want %v", marked, token.NoticeAt, want)
	}
}

// operators are the people who can operate.
type operators struct {
	authority.Granter

	ids []string
}

func (o operators) Operators(context.Context) ([]string, error) { return o.ids, nil }

// ending is a token that ends soon.
type ending struct {
	authstore.APITokenExpiry

	token auth.APIToken
}

func (e ending) Due(context.Context, time.Time, int) ([]auth.APIToken, error) {
	return []auth.APIToken{e.token}, nil
}

func (ending) MoveNotice(context.Context, auth.APITokenID, time.Time, time.Time) error { return nil }

// TestResponsible checks who is told of the end of a token: if a command has made it for a service
// account, all operators.
func TestResponsible(t *testing.T) {
	ci, other := auth.ServiceOwner("ci"), auth.ServiceOwner("other")
	for name, c := range map[string]struct {
		owner, maker auth.Owner
		want         int
	}{
		"a person's own":            {anna, anna, 1},
		"a person's, by a command":  {anna, "", 1},
		"a service's, by a person":  {ci, "ben", 1},
		"a service's, by a command": {ci, "", 2},
		"a service's, by a service": {ci, other, 2},
	} {
		t.Run(name, func(t *testing.T) {
			notifier := notices.New("", "", notices.Ports{})
			err := tokens.NewReminder(tokens.ReminderPorts{
				Expiry: ending{token: auth.APIToken{Owner: c.owner, CreatedBy: c.maker}}, Clock: clocktest.NewManual(noon),
				Notifier: notifier, Grants: operators{ids: []string{"anna", "ben"}},
			}).NotifyAll(t.Context())
			if got := notifier.QueueLength(); err != nil || got != c.want {
				t.Errorf("%d notices, %v; want %d", got, err, c.want)
			}
		})
	}
}
