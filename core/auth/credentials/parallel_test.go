package credentials_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// holding calls hold with the number of each password before it is compared.
type holding struct {
	secrets.PasswordHasher
	compared atomic.Int32
	hold     func(n int)
}

func (h *holding) Verify(ctx context.Context, stored auth.PasswordHash, p auth.Password) (match, stale bool, err error) {
	h.hold(int(h.compared.Add(1)))
	return h.PasswordHasher.Verify(ctx, stored, p)
}

// holdPasswords returns a service of the world with a threshold of two whose passwords are held.
func (w *world) holdPasswords(hold func(n int)) *credentials.Service {
	w.t.Helper()
	ports := w.ports
	ports.Passwords = &holding{PasswordHasher: w.hasher, hold: hold}
	service, err := credentials.New(credentials.Config{
		Lockout: auth.LockoutPolicy{Threshold: 2, Window: time.Hour, Duration: time.Hour}, Issuer: "Tollgate",
	}, ports)
	w.ok(err)
	return service
}

// TestPasswordChangesAtOnce sends right passwords at once. One replaces the password; to the others it has become a wrong one,
// which is not counted.
func TestPasswordChangesAtOnce(t *testing.T) {
	const calls = 12
	w := newWorld(t)
	caller := w.session("s", auth.FullTrust)
	var arrived, all sync.WaitGroup
	arrived.Add(calls)
	service := w.holdPasswords(func(n int) {
		if n <= calls {
			arrived.Done()
			arrived.Wait()
		}
	})
	var mu sync.Mutex
	codes := map[fault.Code]int{}
	for range calls {
		all.Go(func() {
			err := service.ChangePassword(t.Context(), caller, w.password(present), w.password("Another-Horse-8"))
			mu.Lock()
			defer mu.Unlock()
			if f, ok := fault.As(err); ok {
				codes[f.Code]++
			} else if err == nil {
				codes[""]++
			}
		})
	}
	all.Wait()
	if codes[""] != 1 || codes[auth.CodeInvalidCredentials] != calls-1 {
		t.Errorf("answers %v, want one change", codes)
	}
	if l, err := w.ports.Lockouts.Get(t.Context(), auth.ActsLockout(user)); err != nil || len(l.Failures) != 0 {
		t.Errorf("%+v, %v, want no failures", l, err)
	}
}

// TestHashRenewedDuringAChange wants the present password good whatever hash of it is stored in the end.
func TestHashRenewedDuringAChange(t *testing.T) {
	w := newWorld(t)
	caller := w.session("s", auth.FullTrust)
	renewed, err := w.hasher.Hash(t.Context(), w.password(present))
	w.ok(err)
	service := w.holdPasswords(func(n int) {
		if n == 1 {
			w.ok(w.ports.Accounts.Update(t.Context(), user, func(a *auth.Account) error { a.PasswordHash = renewed; return nil }))
		}
	})
	w.ok(service.ChangePassword(t.Context(), caller, w.password(present), w.password("Another-Horse-8")))
	match, _, err := w.hasher.Verify(t.Context(), w.account().PasswordHash, w.password("Another-Horse-8"))
	if err != nil || !match {
		t.Errorf("the new password does not match: %v", err)
	}
}

// TestPasswordThatWasJustReplaced wants the old password refused, and counted only from a minute after the change on.
func TestPasswordThatWasJustReplaced(t *testing.T) {
	w := newWorld(t)
	caller := w.session("s", auth.FullTrust)
	change := func(from string) error {
		return w.service.ChangePassword(t.Context(), caller, w.password(from), w.password("Another-Horse-8"))
	}
	w.ok(change(present))
	for range 10 {
		w.wantFault("the old password", change(present), fault.Unauthenticated, auth.CodeInvalidCredentials)
	}
	w.wantFault("a wrong password", change("Wrong Horse 9!"), fault.Unauthenticated, auth.CodeInvalidCredentials)
	w.clock.now = w.clock.now.Add(time.Minute + time.Second)
	for range 4 {
		w.wantFault("the old password, later", change(present), fault.Unauthenticated, auth.CodeInvalidCredentials)
	}
	w.wantFault("while locked", change("Another-Horse-8"), fault.Forbidden, auth.CodeAccountLocked)
}
