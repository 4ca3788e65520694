package authstoretest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// runAccounts tests the account store.
func runAccounts(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	testCases(t, open, map[string]func(t *testing.T, s Stores){
		"a stored account has the value of every field":                          accountKeepsEveryField,
		"any account is returned as it was stored":                               accountRoundTrips,
		"a returned account shares no memory with the stored one":                accountSharesNoMemory,
		"an account that does not exist is not found":                            accountNotFound,
		"a second account with the same address is refused":                      refusesTakenAddress,
		"a transaction can go on after a refused address":                        continuesAfterConflict,
		"one of several parallel accounts with the same address is stored":       createsOneInParallel,
		"an update does not change the id, the address and the time of creation": keepsIdentity,
		"an update whose change fails stores nothing":                            accountFailedChange,
		"parallel updates of an account are all stored":                          accountLosesNoUpdate,
		"pages list every account once, in order":                                listsToTheEnd,
		"a failed transaction stores no account":                                 accountRollsBack,
		"a call with a cancelled context fails":                                  accountHeedsCancel,
	})
}

// Account returns a sample with every field set; samples of different numbers
// share no identifier and no address.
func Account(n int) auth.Account {
	return auth.Account{
		ID: recordtest.UUID[auth.UserID](n), Email: auth.Email(fmt.Sprintf("person-%05d@example.com", n)),
		Name: "Ada O'Neill \\ \"é\"", Phone: "+15550100", PhonePending: true, PasswordHash: "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA",
		Replaced: auth.ReplacedPassword{
			Hash: "$argon2id$v=19$m=19456,t=2,p=1$b2xk$aGFzaA", At: recordtest.Epoch().Add(time.Minute),
		},
		State: auth.AccountLocked,
		MFA: auth.MFA{
			Secret: auth.SealedSecret{0, 1, '\'', 0xff}, Active: true, LastStep: 1 << 40,
			Recovery: []auth.RecoveryHash{{0, 1, '\''}, {31: 0xff}},
			Enrolment: auth.Enrolment{
				At: recordtest.Epoch().Add(time.Minute), SessionID: recordtest.UUID[auth.SessionID](900),
			},
			Name: "Phone \"é\"",
			More: []auth.Authenticator{
				authenticator("Tablet \\ 'é'"), {Name: "Laptop", Secret: auth.SealedSecret{2}, Enrolment: auth.Enrolment{At: recordtest.Epoch()}},
			},
		},
		AdmittedUntil: recordtest.Epoch().Add(2 * time.Hour),
		CreatedAt:     recordtest.Epoch(), UpdatedAt: recordtest.Epoch().Add(time.Hour),
	}
}

func authenticator(name string) auth.Authenticator {
	return auth.Authenticator{
		Name: name, Secret: auth.SealedSecret{0, 0xff}, Active: true, LastStep: 1 << 40,
		Enrolment: auth.Enrolment{
			At: recordtest.Epoch().Add(2 * time.Minute), SessionID: recordtest.UUID[auth.SessionID](901),
		},
	}
}

func accountKeepsEveryField(t *testing.T, s Stores) {
	a := Account(1)
	recordtest.Whole(t, a)
	recordtest.OK(t, s.Accounts.Create(t.Context(), a))
	recordtest.Equal(t, recordtest.Must(s.Accounts.Get(t.Context(), a.ID))(t), a)
	recordtest.Equal(t, recordtest.Must(s.Accounts.ByEmail(t.Context(), a.Email))(t), a)
	recordtest.Equal(t, recordtest.Must(s.Accounts.List(t.Context(), "", 10))(t), []auth.Account{a})
}

func accountRoundTrips(t *testing.T, s Stores) {
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		a, b := accountDraw(r, n), accountDraw(r, n)
		recordtest.OK(r, s.Accounts.Create(t.Context(), a))
		recordtest.Equal(r, recordtest.Must(s.Accounts.Get(t.Context(), a.ID))(r), a)
		b.CreatedAt = a.CreatedAt
		recordtest.OK(r, s.Accounts.Update(t.Context(), a.ID, func(p *auth.Account) error {
			recordtest.Equal(r, *p, a)
			*p = b
			return nil
		}))
		recordtest.Equal(r, recordtest.Must(s.Accounts.ByEmail(t.Context(), a.Email))(r), b)
	})
}

func accountDraw(r *rapid.T, n int) auth.Account {
	a := Account(n)
	a.Name = recordtest.Text().Draw(r, "name")
	a.Phone, a.PhonePending = recordtest.Text().Draw(r, "phone"), rapid.Bool().Draw(r, "phone pending")
	a.PasswordHash = auth.PasswordHash(recordtest.Text().Draw(r, "password hash"))
	a.State = rapid.SampledFrom([]auth.AccountState{auth.AccountActive, auth.AccountLocked, auth.AccountDisabled}).
		Draw(r, "state")
	a.MFA = auth.MFA{
		Secret: recordtest.Bytes().Draw(r, "secret"), Active: rapid.Bool().Draw(r, "active"),
		LastStep: rapid.Int64().Draw(r, "last step"),
		Recovery: recordtest.Optional(rapid.SliceOfN(rapid.Custom(recoveryHash), 1, auth.RecoveryCodes)).Draw(r,
			"recovery codes"),
		Enrolment: rapid.SampledFrom([]auth.Enrolment{
			{}, {At: recordtest.Epoch()}, {At: recordtest.Epoch(), SessionID: recordtest.UUID[auth.SessionID](900)},
		}).Draw(r, "enrolment"),
		Name: recordtest.Text().Draw(r, "name of the authenticator"),
		More: recordtest.Optional(rapid.SliceOfN(rapid.Map(recordtest.Text(), authenticator), 1, 4)).Draw(r, "more"),
	}
	a.CreatedAt = recordtest.Instant().Draw(r, "created")
	a.UpdatedAt = recordtest.Instant().Draw(r, "updated")
	return a
}

func recoveryHash(r *rapid.T) auth.RecoveryHash {
	return auth.RecoveryHash(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(r, "recovery code"))
}

func accountSharesNoMemory(t *testing.T, s Stores) {
	a := Account(1)
	recordtest.OK(t, s.Accounts.Create(t.Context(), a))
	a.MFA.Secret[0] ^= 1
	a.MFA.Recovery[0][0] ^= 1
	a.MFA.More[0].Secret[0] ^= 1
	got := recordtest.Must(s.Accounts.Get(t.Context(), a.ID))(t)
	recordtest.Equal(t, got, Account(1))
	got.MFA.Secret[0] ^= 1
	got.MFA.Recovery[0][0] ^= 1
	got.MFA.More[0].Secret[0] ^= 1
	recordtest.Must(s.Accounts.List(t.Context(), "", 1))(t)[0].MFA.Secret[0] ^= 1
	failed := errors.New("failed")
	err := s.Accounts.Update(t.Context(), a.ID, func(p *auth.Account) error {
		p.MFA.Secret[0] ^= 1
		p.MFA.Recovery[0][0] ^= 1
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("Update returned %v", err)
	}
	recordtest.Equal(t, recordtest.Must(s.Accounts.Get(t.Context(), a.ID))(t), Account(1))
}

func accountNotFound(t *testing.T, s Stores) {
	recordtest.OK(t, s.Accounts.Create(t.Context(), Account(1)))
	none := Account(2)
	recordtest.WantNotFound(t, map[string]func() error{
		"Get":     func() error { _, err := s.Accounts.Get(t.Context(), none.ID); return err },
		"ByEmail": func() error { _, err := s.Accounts.ByEmail(t.Context(), none.Email); return err },
		"Update": func() error {
			return s.Accounts.Update(t.Context(), none.ID, func(*auth.Account) error {
				t.Error("change was called")
				return nil
			})
		},
	})
}

func refusesTakenAddress(t *testing.T, s Stores) {
	a, b := Account(1), Account(2)
	recordtest.OK(t, s.Accounts.Create(t.Context(), a))
	b.Email = a.Email
	if err := s.Accounts.Create(t.Context(), b); !fault.Is(err, fault.Conflict) {
		t.Errorf("Create with a taken address returned %v", err)
	}
	b.Email, b.ID = "other@example.com", a.ID
	if err := s.Accounts.Create(t.Context(), b); !fault.Is(err, fault.Conflict) {
		t.Errorf("Create with a taken id returned %v", err)
	}
	recordtest.Equal(t, recordtest.Must(s.Accounts.List(t.Context(), "", 10))(t), []auth.Account{a})
}

// continuesAfterConflict: a transaction may go on after a conflict.
func continuesAfterConflict(t *testing.T, s Stores) {
	recordtest.OK(t, s.Accounts.Create(t.Context(), Account(1)))
	recordtest.OK(t, s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		if err := s.Accounts.Create(ctx, Account(1)); !fault.Is(err, fault.Conflict) {
			t.Errorf("Create with a taken address returned %v", err)
		}
		return s.Accounts.Create(ctx, Account(2))
	}))
	recordtest.Equal(t, recordtest.Must(s.Accounts.Get(t.Context(), Account(2).ID))(t), Account(2))
}

func createsOneInParallel(t *testing.T, s Stores) {
	errs := recordtest.Parallel(20, func(i int) error {
		a := Account(i)
		a.Email = "one@example.com"
		return s.Accounts.Create(t.Context(), a)
	})
	recordtest.WantOne(t, errs, fault.Conflict)
	if n := len(recordtest.Must(s.Accounts.List(t.Context(), "", 100))(t)); n != 1 {
		t.Errorf("%d accounts are stored, want 1", n)
	}
}

func keepsIdentity(t *testing.T, s Stores) {
	a := Account(1)
	recordtest.OK(t, s.Accounts.Create(t.Context(), a))
	recordtest.OK(t, s.Accounts.Update(t.Context(), a.ID, func(p *auth.Account) error {
		*p = Account(2)
		p.CreatedAt = p.CreatedAt.Add(time.Hour)
		p.Name = "Grace"
		return nil
	}))
	a.Name = "Grace"
	recordtest.Equal(t, recordtest.Must(s.Accounts.List(t.Context(), "", 10))(t), []auth.Account{a})
}

func accountFailedChange(t *testing.T, s Stores) {
	a, failed := Account(1), errors.New("failed")
	recordtest.OK(t, s.Accounts.Create(t.Context(), a))
	err := s.Accounts.Update(t.Context(), a.ID, func(p *auth.Account) error {
		p.Name = "Grace"
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("Update returned %v", err)
	}
	recordtest.Equal(t, recordtest.Must(s.Accounts.Get(t.Context(), a.ID))(t), a)
}

func accountLosesNoUpdate(t *testing.T, s Stores) {
	const calls = 20
	a := Account(1)
	a.MFA.LastStep = 0
	recordtest.OK(t, s.Accounts.Create(t.Context(), a))
	recordtest.OK(t, errors.Join(recordtest.Parallel(calls, func(int) error {
		return s.Accounts.Update(t.Context(), a.ID, func(p *auth.Account) error {
			p.MFA.LastStep++
			return nil
		})
	})...))
	a.MFA.LastStep = calls
	recordtest.Equal(t, recordtest.Must(s.Accounts.Get(t.Context(), a.ID))(t), a)
}

func listsToTheEnd(t *testing.T, s Stores) {
	const all, limit = 25, 8
	want := make([]auth.Email, all)
	for i := range all { // stored in another order than listed
		a := Account(i * 7 % all)
		recordtest.OK(t, s.Accounts.Create(t.Context(), a))
		want[i] = Account(i).Email
	}
	// bytewise, whatever the locale
	for _, odd := range []auth.Email{"Zoe@example.com", "_@example.com", "é@example.com"} {
		a := Account(len(want))
		a.Email = odd
		recordtest.OK(t, s.Accounts.Create(t.Context(), a))
		want = append(want, odd)
	}
	want = append(append([]auth.Email{"Zoe@example.com", "_@example.com"}, want[:all]...), "é@example.com")
	var got []auth.Email
	for after := auth.Email(""); ; after = got[len(got)-1] {
		page := recordtest.Must(s.Accounts.List(t.Context(), after, limit))(t)
		for _, a := range page {
			got = append(got, a.Email)
		}
		if len(page) > limit {
			t.Fatalf("a page has %d accounts, want at most %d", len(page), limit)
		}
		if len(page) < limit {
			break
		}
	}
	recordtest.Equal(t, got, want)
	if page := recordtest.Must(s.Accounts.List(t.Context(), "", 0))(t); len(page) != 0 {
		t.Errorf("a page of none has %d accounts", len(page))
	}
}

func accountRollsBack(t *testing.T, s Stores) {
	a := Account(1)
	recordtest.OK(t, s.Accounts.Create(t.Context(), a))
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		if err := s.Accounts.Create(ctx, Account(2)); err != nil {
			return err
		}
		if _, err := s.Accounts.Get(ctx, Account(2).ID); err != nil {
			t.Errorf("the transaction does not see its own account: %v", err)
		}
		return s.Accounts.Update(ctx, a.ID, func(p *auth.Account) error { p.Name = "Grace"; return nil })
	})
	recordtest.Equal(t, recordtest.Must(s.Accounts.List(t.Context(), "", 10))(t), []auth.Account{a})
}

func accountHeedsCancel(t *testing.T, s Stores) {
	a := Account(1)
	recordtest.OK(t, s.Accounts.Create(t.Context(), a))
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Create":  func(ctx context.Context) error { return s.Accounts.Create(ctx, Account(2)) },
		"Get":     func(ctx context.Context) error { _, err := s.Accounts.Get(ctx, a.ID); return err },
		"ByEmail": func(ctx context.Context) error { _, err := s.Accounts.ByEmail(ctx, a.Email); return err },
		"Update": func(ctx context.Context) error {
			return s.Accounts.Update(ctx, a.ID, func(p *auth.Account) error { p.Name = "Grace"; return nil })
		},
		"List": func(ctx context.Context) error { _, err := s.Accounts.List(ctx, "", 10); return err },
	})
	recordtest.Equal(t, recordtest.Must(s.Accounts.List(t.Context(), "", 10))(t), []auth.Account{a})
}
