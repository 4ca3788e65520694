package authstoretest

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// runPendingLogins tests the store of pending logins.
func runPendingLogins(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	testCases(t, withAccounts(open), map[string]func(t *testing.T, s Stores){
		"a stored login has the value of every field":      pendingLoginKeepsEveryField,
		"any login is returned as it was stored":           pendingLoginRoundTrips,
		"a new login of a device replaces the pending one": replacesLoginOfDevice,
		"a new login removes the person's expired ones":    removesExpiredLogins,
		"a pending login can be taken once":                takesLoginOnce,
		"all pending logins of a person can be removed":    removesLoginsOfPerson,
		"deletion removes logins that have expired":        pendingLoginDeletesExpired,
		"a failed transaction stores no login":             pendingLoginRollsBack,
		"a call with a cancelled context fails":            pendingLoginHeedsCancel,
	})
}

// pendingLoginSample returns one of a person with every field set. Greater numbers end later.
func pendingLoginSample(person, n int) auth.PendingLogin {
	made := recordtest.Epoch().Add(time.Duration(n) * time.Minute)
	return auth.PendingLogin{
		UserID: Account(person).ID, DeviceIdentity: auth.DeviceIdentity(rune('a' + n)),
		Subject: "device:one", Proven: true, Company: auth.CompanyLogin{ID: "login", Until: made.Add(time.Hour)}, CreatedAt: made, ExpiresAt: made.Add(5 * time.Minute),
	}
}

// wantLogins fails the test unless the store has each of the pending logins.
func wantLogins(ctx context.Context, t rapid.TB, s Stores, all ...auth.PendingLogin) {
	t.Helper()
	for _, p := range all {
		recordtest.Equal(t, recordtest.Must(s.PendingLogins.Find(ctx, p.UserID, p.DeviceIdentity))(t), p)
	}
}

// wantNoLogins fails the test if the store has any of the pending logins.
func wantNoLogins(t *testing.T, s Stores, all ...auth.PendingLogin) {
	t.Helper()
	for _, p := range all {
		if got, err := s.PendingLogins.Find(t.Context(), p.UserID, p.DeviceIdentity); !fault.Is(err, fault.NotFound) {
			t.Errorf("Find returned %+v, %v, want fault.NotFound", got, err)
		}
	}
}

func putLogins(t *testing.T, s Stores, all ...auth.PendingLogin) {
	t.Helper()
	for _, p := range all {
		recordtest.OK(t, s.PendingLogins.Put(t.Context(), p))
	}
}

func pendingLoginKeepsEveryField(t *testing.T, s Stores) {
	p := pendingLoginSample(1, 1)
	recordtest.Whole(t, p)
	putLogins(t, s, p)
	wantLogins(t.Context(), t, s, p)
	wantNoLogins(t, s, pendingLoginSample(0, 1), pendingLoginSample(1, 2))
	none := pendingLoginSample(0, 1)
	none.UserID = recordtest.UUID[auth.UserID](people + 1)
	wantNoLogins(t, s, none)
	if err := s.PendingLogins.Put(t.Context(), none); err == nil {
		t.Error("a login of an unknown account is kept")
	}
}

func pendingLoginRoundTrips(t *testing.T, s Stores) {
	rapid.Check(t, func(r *rapid.T) {
		p := auth.PendingLogin{
			UserID:         Account(rapid.IntRange(0, people-1).Draw(r, "person")).ID,
			DeviceIdentity: auth.DeviceIdentity(recordtest.Text().Draw(r, "identity")),
			Subject:        auth.LockoutKey(recordtest.Text().Draw(r, "subject")),
			Proven:         rapid.Bool().Draw(r, "proven"),
			CreatedAt:      recordtest.Instant().Draw(r, "created"), ExpiresAt: recordtest.Instant().Draw(r, "expires"),
		}
		recordtest.OK(r, s.PendingLogins.Put(t.Context(), p))
		wantLogins(t.Context(), r, s, p)
	})
}

func replacesLoginOfDevice(t *testing.T, s Stores) {
	first, other := pendingLoginSample(0, 1), pendingLoginSample(1, 1)
	putLogins(t, s, first, other)
	second := pendingLoginSample(0, 2)
	second.DeviceIdentity, second.Subject, second.Proven = first.DeviceIdentity, "email:other", false
	putLogins(t, s, second)
	wantLogins(t.Context(), t, s, second, other)
	recordtest.OK(t, s.PendingLogins.Take(t.Context(), second.UserID, second.DeviceIdentity))
	wantNoLogins(t, s, first)
}

func removesExpiredLogins(t *testing.T, s Stores) {
	over, open, others := pendingLoginSample(0, 0), pendingLoginSample(0, 1), pendingLoginSample(1, 0)
	putLogins(t, s, over, open, others)
	putLogins(t, s, pendingLoginSample(0, 5)) // made when the first one ends
	wantLogins(t.Context(), t, s, open, others, pendingLoginSample(0, 5))
	wantNoLogins(t, s, over)
}

func takesLoginOnce(t *testing.T, s Stores) {
	p, other := pendingLoginSample(0, 1), pendingLoginSample(0, 2)
	putLogins(t, s, p, other)
	recordtest.WantOne(t, recordtest.Parallel(20, func(i int) error {
		if i%2 == 0 {
			return s.PendingLogins.Take(t.Context(), p.UserID, p.DeviceIdentity)
		}
		return s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
			return s.PendingLogins.Take(ctx, p.UserID, p.DeviceIdentity)
		})
	}), fault.NotFound)
	wantNoLogins(t, s, p)
	wantLogins(t.Context(), t, s, other)
}

func removesLoginsOfPerson(t *testing.T, s Stores) {
	putLogins(t, s, pendingLoginSample(0, 1), pendingLoginSample(0, 2), pendingLoginSample(1, 1))
	for range 2 {
		recordtest.OK(t, s.PendingLogins.RemoveAll(t.Context(), pendingLoginSample(0, 1).UserID))
		wantNoLogins(t, s, pendingLoginSample(0, 1), pendingLoginSample(0, 2))
		wantLogins(t.Context(), t, s, pendingLoginSample(1, 1))
	}
}

func pendingLoginDeletesExpired(t *testing.T, s Stores) {
	putLogins(t, s, pendingLoginSample(0, 1), pendingLoginSample(0, 2), pendingLoginSample(1, 1),
		pendingLoginSample(1, 3))
	for _, n := range []int{2, 0} {
		if got := recordtest.Must(s.PendingLogins.DeleteExpired(t.Context(), pendingLoginSample(0, 2).ExpiresAt))(
			t); got != n {
			t.Errorf("DeleteExpired = %d, want %d", got, n)
		}
	}
	wantNoLogins(t, s, pendingLoginSample(0, 1), pendingLoginSample(1, 1))
	wantLogins(t.Context(), t, s, pendingLoginSample(0, 2), pendingLoginSample(1, 3))
}

func pendingLoginRollsBack(t *testing.T, s Stores) {
	p := pendingLoginSample(0, 1)
	putLogins(t, s, p)
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		if err := s.PendingLogins.Put(ctx, pendingLoginSample(0, 2)); err != nil {
			return err
		}
		wantLogins(ctx, t, s, p, pendingLoginSample(0, 2))
		return errors.Join(s.PendingLogins.Take(ctx, p.UserID, p.DeviceIdentity),
			s.PendingLogins.RemoveAll(ctx, p.UserID))
	})
	wantLogins(t.Context(), t, s, p)
	wantNoLogins(t, s, pendingLoginSample(0, 2))
}

func pendingLoginHeedsCancel(t *testing.T, s Stores) {
	p := pendingLoginSample(0, 1)
	putLogins(t, s, p)
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Put": func(ctx context.Context) error { return s.PendingLogins.Put(ctx, pendingLoginSample(0, 2)) },
		"Find": func(ctx context.Context) error {
			_, err := s.PendingLogins.Find(ctx, p.UserID, p.DeviceIdentity)
			return err
		},
		"Take":      func(ctx context.Context) error { return s.PendingLogins.Take(ctx, p.UserID, p.DeviceIdentity) },
		"RemoveAll": func(ctx context.Context) error { return s.PendingLogins.RemoveAll(ctx, p.UserID) },
		"DeleteExpired": func(ctx context.Context) error {
			_, err := s.PendingLogins.DeleteExpired(ctx, p.ExpiresAt.Add(time.Hour))
			return err
		},
	})
	wantLogins(t.Context(), t, s, p)
	wantNoLogins(t, s, pendingLoginSample(0, 2))
}
