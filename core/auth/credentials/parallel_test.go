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

// holdingHasher calls hold with the number of the comparison before each comparison.
type holdingHasher struct {
	secrets.PasswordHasher
	compared atomic.Int32
	hold     func(n int)
}

func (h *holdingHasher) Verify(
	ctx context.Context, stored auth.PasswordHash, p auth.Password,
) (match, stale bool, err error) {
	h.hold(int(h.compared.Add(1)))
	return h.PasswordHasher.Verify(ctx, stored, p)
}

// holdPasswords returns a service of the fixture with a threshold of two and a holdingHasher.
func (fx *fixture) holdPasswords(hold func(n int)) *credentials.Service {
	fx.t.Helper()
	ports := fx.ports
	ports.Passwords = &holdingHasher{PasswordHasher: fx.hasher, hold: hold}
	service, err := credentials.New(credentials.Config{
		Lockout: auth.LockoutPolicy{Threshold: 2, Window: time.Hour, Duration: time.Hour}, Issuer: "Tollgate",
		ReauthenticationMaxAge: 5 * time.Minute,
	}, ports)
	fx.mustSucceed(err)
	return service
}

// TestPasswordChangesAtOnce sends right passwords at the same time. One request replaces the
// password; for the others it is then wrong, which is not counted.
func TestPasswordChangesAtOnce(t *testing.T) {
	const calls = 12
	fx := newFixture(t)
	caller := fx.newSession("s", auth.FullTrust)
	var arrived, all sync.WaitGroup
	arrived.Add(calls)
	service := fx.holdPasswords(func(n int) {
		if n <= calls {
			arrived.Done()
			arrived.Wait()
		}
	})
	var mu sync.Mutex
	codes := map[fault.Code]int{}
	for range calls {
		all.Go(func() {
			err := service.ChangePassword(t.Context(), caller, fx.newPassword(present),
				fx.newPassword("Another-Horse-8"))
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
	if l, err := fx.ports.Lockouts.Get(t.Context(), auth.ActsLockout(user)); err != nil || len(l.Failures) != 0 {
		t.Errorf("%+v, %v, want no failures", l, err)
	}
}

// TestHashRenewedDuringAChange checks that the present password is accepted if its hash is renewed
// at the same time.
func TestHashRenewedDuringAChange(t *testing.T) {
	fx := newFixture(t)
	caller := fx.newSession("s", auth.FullTrust)
	renewed, err := fx.hasher.Hash(t.Context(), fx.newPassword(present))
	fx.mustSucceed(err)
	service := fx.holdPasswords(func(n int) {
		if n == 1 {
			fx.mustSucceed(fx.ports.Accounts.Update(t.Context(), user, func(a *auth.Account) error {
				a.PasswordHash = renewed
				return nil
			}))
		}
	})
	fx.mustSucceed(service.ChangePassword(t.Context(), caller, fx.newPassword(present),
		fx.newPassword("Another-Horse-8")))
	match, _, err := fx.hasher.Verify(t.Context(), fx.getAccount().PasswordHash, fx.newPassword("Another-Horse-8"))
	if err != nil || !match {
		t.Errorf("the new password does not match: %v", err)
	}
}

// TestPasswordThatWasJustReplaced checks that the old password is refused, and counted only from a
// minute after the change on.
func TestPasswordThatWasJustReplaced(t *testing.T) {
	fx := newFixture(t)
	caller := fx.newSession("s", auth.FullTrust)
	change := func(from string) error {
		return fx.service.ChangePassword(t.Context(), caller, fx.newPassword(from), fx.newPassword("Another-Horse-8"))
	}
	fx.mustSucceed(change(present))
	for range 10 {
		fx.wantFault("the old password", change(present), fault.Unauthenticated, auth.CodeInvalidCredentials)
	}
	fx.wantFault("a wrong password", change("Wrong Horse 9!"), fault.Unauthenticated, auth.CodeInvalidCredentials)
	fx.clock.Advance(time.Minute + time.Second)
	for range 4 {
		fx.wantFault("the old password, later", change(present), fault.Unauthenticated, auth.CodeInvalidCredentials)
	}
	fx.wantFault("while locked", change("Another-Horse-8"), fault.Forbidden, auth.CodeAccountLocked)
}
