package federating

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// operators are the people who can operate.
type operators struct {
	authority.Granter

	ids []string
	err error
}

func (o *operators) Operators(context.Context) ([]string, error) { return o.ids, o.err }

func (o *operators) MayOperate(_ context.Context, id string) (bool, error) {
	return slices.Contains(o.ids, id), o.err
}

// used remembers what was used once.
type used struct {
	keys map[string]bool
	err  error
}

func (u *used) Claim(_ context.Context, key string, _ time.Duration) (bool, error) {
	if u.err != nil {
		return false, u.err
	}
	first := !u.keys[key]
	u.keys[key] = true
	return first, nil
}

func (u *used) Release(_ context.Context, key string) error {
	delete(u.keys, key)
	return u.err
}

// TestAdmittedPasswordsAreAnnounced checks that every operator gets one notice of each act of the
// command, from one of two instances.
func TestAdmittedPasswordsAreAnnounced(t *testing.T) {
	ctx, db := t.Context(), fakedb.New()
	clk := clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC))
	accounts, notifier := fakedb.NewAccounts(db), notices.New("Tollgate", "", notices.Ports{})
	grants, claims := &operators{ids: []string{"olga", "otto"}}, &used{keys: map[string]bool{}}
	var instances []*Service
	for range 2 {
		s, err := New(Config{}, Ports{
			Directory: fakedb.NewDirectory(db), Grants: grants, Used: claims, Notices: notifier, Clock: clk,
			Root: auth.RootSecret(strings.Repeat("r", 32)),
		})
		must.Succeed(t, err)
		instances = append(instances, s)
	}
	look := func(want int, when string) {
		t.Helper()
		for _, s := range instances {
			s.announceAdmitted(ctx)
		}
		if got := notifier.QueueLength(); got != want {
			t.Errorf("%s: %d notices, want %d", when, got, want)
		}
	}
	admit := func(lasts time.Duration) {
		t.Helper()
		if err := accounts.Update(ctx, "ada", func(a *auth.Account) error {
			a.AdmittedUntil = clk.Now().Add(lasts)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	must.Succeed(t, accounts.Create(ctx, auth.Account{ID: "ada", Email: "ada@example.com", State: auth.AccountActive}))
	look(0, "before the command")
	admit(time.Hour)
	claims.err = errors.New("away")
	look(0, "without the store")
	claims.err, grants.err = nil, errors.New("away")
	look(0, "without the database")
	grants.err = nil
	look(2, "after the command")
	look(2, "again")
	admit(2 * time.Hour)
	look(4, "after the command again")
	clk.Advance(3 * time.Hour)
	clear(claims.keys)
	look(4, "after the end")
}

// TestNewOperatorsAreAnnounced checks that all operators get one notice of each new one, from one of two
// instances, and none of those who were there at the start.
func TestNewOperatorsAreAnnounced(t *testing.T) {
	clk := clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC))
	notifier, grants := notices.New("Tollgate", "", notices.Ports{}), &operators{ids: []string{"olga", "otto"}}
	claims := &used{keys: map[string]bool{}}
	s := &Service{ports: Ports{Grants: grants, Used: claims, Notices: notifier, Clock: clk}}
	var before [2][]string
	look := func(want int, when string) {
		t.Helper()
		for i := range before {
			before[i] = s.announceOperators(t.Context(), before[i])
		}
		if got := notifier.QueueLength(); got != want {
			t.Errorf("%s: %d notices, want %d", when, got, want)
		}
	}
	look(0, "at the start")
	grants.err = errors.New("away")
	look(0, "without the database")
	grants.err, grants.ids = nil, []string{"mallory", "olga", "otto"}
	look(3, "after a grant")
	look(3, "again")
	grants.ids = grants.ids[1:]
	look(3, "after it was taken away")
}
