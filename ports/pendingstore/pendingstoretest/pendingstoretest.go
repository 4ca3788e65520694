// Package pendingstoretest is the contract suite of the store of pending
// logins. It tests what every store promises, not when a login has to wait.
package pendingstoretest

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/accountstore"
	"github.com/tollgate-dev/tollgate/ports/accountstore/accountstoretest"
	"github.com/tollgate-dev/tollgate/ports/accountstore/recordtest"
	"github.com/tollgate-dev/tollgate/ports/pendingstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Subject is the store under test and what it lives beside: pending logins
// belong to accounts.
type Subject struct {
	Pending  pendingstore.Store
	Accounts accountstore.Store
	Runner   transaction.Runner
}

// Run runs the suite. open returns empty stores and registers its own cleanup.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s Subject){
		"keeps every field":          keepsEveryField,
		"gives back what was stored": roundTrips,
		"one of a device":            keepsOneOfADevice,
		"removes what is over":       removesWhatIsOver,
		"is taken once":              takenOnce,
		"removes all of a person":    removesAll,
		"deletes what has ended":     deletesExpired,
		"rolls back":                 rollsBack,
		"heeds a cancelled context":  heedsCancel,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for n := range people {
				recordtest.OK(t, s.Accounts.Create(t.Context(), accountstoretest.Account(n)))
			}
			test(t, s)
		})
	}
}

// people is how many accounts there are.
const people = 2

// sample returns one of a person with every field set. Greater numbers end
// later.
func sample(person, n int) auth.PendingLogin {
	made := recordtest.Epoch().Add(time.Duration(n) * time.Minute)
	return auth.PendingLogin{
		UserID: accountstoretest.Account(person).ID, DeviceIdentity: auth.DeviceIdentity(rune('a' + n)),
		Subject: "device:one", Proven: true, CreatedAt: made, ExpiresAt: made.Add(5 * time.Minute),
	}
}

// want fails the test unless the store has each of the pending logins.
func want(ctx context.Context, t rapid.TB, s Subject, all ...auth.PendingLogin) {
	t.Helper()
	for _, p := range all {
		recordtest.Equal(t, recordtest.Must(s.Pending.Find(ctx, p.UserID, p.DeviceIdentity))(t), p)
	}
}

// wantNone fails the test if the store has any of the pending logins.
func wantNone(t *testing.T, s Subject, all ...auth.PendingLogin) {
	t.Helper()
	for _, p := range all {
		if got, err := s.Pending.Find(t.Context(), p.UserID, p.DeviceIdentity); !fault.Is(err, fault.NotFound) {
			t.Errorf("Find returned %+v, %v, want fault.NotFound", got, err)
		}
	}
}

func put(t *testing.T, s Subject, all ...auth.PendingLogin) {
	t.Helper()
	for _, p := range all {
		recordtest.OK(t, s.Pending.Put(t.Context(), p))
	}
}

func keepsEveryField(t *testing.T, s Subject) {
	p := sample(1, 1)
	recordtest.Whole(t, p)
	put(t, s, p)
	want(t.Context(), t, s, p)
	wantNone(t, s, sample(0, 1), sample(1, 2))
	none := sample(0, 1)
	none.UserID = recordtest.UUID[auth.UserID](people + 1)
	wantNone(t, s, none)
	if err := s.Pending.Put(t.Context(), none); err == nil {
		t.Error("a login of nobody is kept")
	}
}

func roundTrips(t *testing.T, s Subject) {
	rapid.Check(t, func(r *rapid.T) {
		p := auth.PendingLogin{
			UserID:         accountstoretest.Account(rapid.IntRange(0, people-1).Draw(r, "person")).ID,
			DeviceIdentity: auth.DeviceIdentity(recordtest.Text().Draw(r, "identity")),
			Subject:        auth.LockoutKey(recordtest.Text().Draw(r, "subject")), Proven: rapid.Bool().Draw(r, "proven"),
			CreatedAt: recordtest.Instant().Draw(r, "created"), ExpiresAt: recordtest.Instant().Draw(r, "expires"),
		}
		recordtest.OK(r, s.Pending.Put(t.Context(), p))
		want(t.Context(), r, s, p)
	})
}

func keepsOneOfADevice(t *testing.T, s Subject) {
	first, other := sample(0, 1), sample(1, 1)
	put(t, s, first, other)
	second := sample(0, 2)
	second.DeviceIdentity, second.Subject, second.Proven = first.DeviceIdentity, "email:other", false
	put(t, s, second)
	want(t.Context(), t, s, second, other)
	recordtest.OK(t, s.Pending.Take(t.Context(), second.UserID, second.DeviceIdentity))
	wantNone(t, s, first)
}

func removesWhatIsOver(t *testing.T, s Subject) {
	over, open, others := sample(0, 0), sample(0, 1), sample(1, 0)
	put(t, s, over, open, others)
	put(t, s, sample(0, 5)) // made when the first one ends
	want(t.Context(), t, s, open, others, sample(0, 5))
	wantNone(t, s, over)
}

func takenOnce(t *testing.T, s Subject) {
	p, other := sample(0, 1), sample(0, 2)
	put(t, s, p, other)
	recordtest.WantOne(t, recordtest.Parallel(20, func(i int) error {
		if i%2 == 0 {
			return s.Pending.Take(t.Context(), p.UserID, p.DeviceIdentity)
		}
		return s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
			return s.Pending.Take(ctx, p.UserID, p.DeviceIdentity)
		})
	}), fault.NotFound)
	wantNone(t, s, p)
	want(t.Context(), t, s, other)
}

func removesAll(t *testing.T, s Subject) {
	put(t, s, sample(0, 1), sample(0, 2), sample(1, 1))
	for range 2 {
		recordtest.OK(t, s.Pending.RemoveAll(t.Context(), sample(0, 1).UserID))
		wantNone(t, s, sample(0, 1), sample(0, 2))
		want(t.Context(), t, s, sample(1, 1))
	}
}

func deletesExpired(t *testing.T, s Subject) {
	put(t, s, sample(0, 1), sample(0, 2), sample(1, 1), sample(1, 3))
	for _, n := range []int{2, 0} {
		if got := recordtest.Must(s.Pending.DeleteExpired(t.Context(), sample(0, 2).ExpiresAt))(t); got != n {
			t.Errorf("DeleteExpired = %d, want %d", got, n)
		}
	}
	wantNone(t, s, sample(0, 1), sample(1, 1))
	want(t.Context(), t, s, sample(0, 2), sample(1, 3))
}

func rollsBack(t *testing.T, s Subject) {
	p := sample(0, 1)
	put(t, s, p)
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		if err := s.Pending.Put(ctx, sample(0, 2)); err != nil {
			return err
		}
		want(ctx, t, s, p, sample(0, 2))
		return errors.Join(s.Pending.Take(ctx, p.UserID, p.DeviceIdentity), s.Pending.RemoveAll(ctx, p.UserID))
	})
	want(t.Context(), t, s, p)
	wantNone(t, s, sample(0, 2))
}

func heedsCancel(t *testing.T, s Subject) {
	p := sample(0, 1)
	put(t, s, p)
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Put":       func(ctx context.Context) error { return s.Pending.Put(ctx, sample(0, 2)) },
		"Find":      func(ctx context.Context) error { _, err := s.Pending.Find(ctx, p.UserID, p.DeviceIdentity); return err },
		"Take":      func(ctx context.Context) error { return s.Pending.Take(ctx, p.UserID, p.DeviceIdentity) },
		"RemoveAll": func(ctx context.Context) error { return s.Pending.RemoveAll(ctx, p.UserID) },
		"DeleteExpired": func(ctx context.Context) error {
			_, err := s.Pending.DeleteExpired(ctx, p.ExpiresAt.Add(time.Hour))
			return err
		},
	})
	want(t.Context(), t, s, p)
	wantNone(t, s, sample(0, 2))
}
