package signin_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// newInstances returns services that share the records of the fixture, as several processes do.
func (fx *fixture) newInstances(n int) []*signin.Service {
	fx.t.Helper()
	list := make([]*signin.Service, n)
	for i := range list {
		fx.startService(authtest.SignIn())
		list[i] = fx.service
	}
	return list
}

// holdUntil makes the hasher hold each password until n of them have arrived.
func (h *testHasher) holdUntil(n int) {
	var arrived sync.WaitGroup
	arrived.Add(n)
	h.hold = func() {
		arrived.Done()
		arrived.Wait()
	}
}

// callEach calls every instance at the same time and counts the error codes that they return.
func callEach(list []*signin.Service, call func(i int, s *signin.Service) error) map[fault.Code]int {
	next := make(chan int, len(list))
	for i := range list {
		next <- i
	}
	return inParallel(len(list), func() error {
		i := <-next
		return call(i, list[i])
	})
}

func (fx *fixture) loginAt(s *signin.Service, word string) error {
	_, err := s.Login(fx.t.Context(), signin.Login{
		Email: anna, Password: newPassword(fx.t, word), Origin: signin.Origin{
			Device: laptopInfo(fx.t), Address: homeAddress,
		},
	})
	return err
}

// TestRightLoginsOnManyInstances checks that no right login is refused, counted or recorded as a
// failure, even with one failure left.
func TestRightLoginsOnManyInstances(t *testing.T) {
	fx := newFixture(t)
	for range 4 {
		_, _ = fx.tryLogin("wrong") // its answer is TestLock's business
	}
	list := fx.newInstances(8)
	fx.hasher.holdUntil(len(list))
	if codes := callEach(list, func(_ int, s *signin.Service) error {
		return fx.loginAt(s, password)
	}); codes[""] != len(list) {
		t.Errorf("answers %v, want %d successes", codes, len(list))
	}
	fx.hasher.hold = nil
	failed := 0
	for _, e := range fx.findEvents(audit.LoginAttempt) {
		if !e.Success {
			failed++
		}
	}
	wantEqual(t, failed, 4, "failed logins in the audit log")
	for range 4 {
		_, err := fx.tryLogin("wrong")
		wantFault(t, "a wrong password after right ones", err, fault.Unauthenticated, auth.CodeInvalidCredentials)
	}
}

// TestWrongLoginsOnManyInstances checks that the number of evaluated passwords equals the
// threshold.
func TestWrongLoginsOnManyInstances(t *testing.T) {
	fx := newFixture(t)
	list := fx.newInstances(20)
	fx.hasher.holdUntil(len(list))
	codes := callEach(list, func(_ int, s *signin.Service) error { return fx.loginAt(s, "wrong") })
	if codes[auth.CodeInvalidCredentials] != 5 || codes[auth.CodeAccountLocked] != 15 {
		t.Errorf("answers %v, want five looked at", codes)
	}
	wantEqual(t, len(fx.findEvents(audit.SuspiciousActivity)), 1, "suspicious activities")
}

// TestLockDuringALogin reaches the threshold while a password is being verified, and checks that a
// right password is refused like a wrong one and that the lock stays.
func TestLockDuringALogin(t *testing.T) {
	for _, word := range []string{password, "wrong"} {
		for name, enrolled := range map[string]bool{"alone": false, "first of two steps": true} {
			t.Run(word+", "+name, func(t *testing.T) {
				fx := newFixture(t)
				if enrolled {
					fx.enrolAuthenticator()
				}
				list := fx.newInstances(2)
				fx.hasher.hold = func() {
					fx.hasher.hold = nil
					for range 5 {
						_ = fx.loginAt(list[1], "wrong") // its answer is TestLock's business
					}
				}
				for _, when := range []string{"under way", "later"} {
					wantFault(t, when, fx.loginAt(list[0], word), fault.Forbidden, auth.CodeAccountLocked)
				}
				wantEqual(t, len(fx.findEvents(audit.SuspiciousActivity)), 1, "suspicious activities")
			})
		}
	}
}

// TestRecoveryCodesOnManyDevices checks that right codes on different devices succeed at the same
// time.
func TestRecoveryCodesOnManyDevices(t *testing.T) {
	fx := newFixture(t)
	user := fx.enrolAuthenticator()
	second, err := auth.NewSecondFactor(rootSecret())
	must.Succeed(t, err)
	var codes []auth.OTP
	for i := range 10 {
		codes = append(codes, auth.OTP(fmt.Sprintf("aaaaa-bbbb%c", 'a'+i)))
	}
	before := fx.clock.Now().Add(-30 * time.Minute)
	fx.updateAccount(user, func(a *auth.Account) {
		a.MFA.Active, a.MFA.Enrolment.At = false, before
		if err := second.Activate(a, authenticator.Code(auth.TOTPStep(before)), codes, "", before); err != nil {
			t.Error(err)
		}
	})
	list := fx.newInstances(len(codes))
	answers := make([]signin.MFAAnswer, len(list))
	for i := range answers {
		device, err := auth.NewDeviceInfo(auth.DeviceFields{UserAgent: fmt.Sprint("device ", i)})
		must.Succeed(t, err)
		answers[i] = signin.MFAAnswer{
			UserID: user, Code: codes[i], Origin: signin.Origin{Device: device, Address: homeAddress},
		}
		fx.mustLogin(func(in *signin.Login) { in.Device = device })
	}
	got := callEach(list, func(i int, s *signin.Service) error {
		_, err := s.VerifyMFA(t.Context(), answers[i])
		return err
	})
	if got[""] != len(list) {
		t.Errorf("answers %v, want %d successes", got, len(list))
	}
}

// TestSameCodeTwiceAtOnce sends one right code to two instances at once, and checks that the
// refused one is not counted for the account.
func TestSameCodeTwiceAtOnce(t *testing.T) {
	fx := newFixture(t)
	user := fx.enrolAuthenticator()
	for range 10 {
		fx.clock.Advance(time.Minute)
		fx.mustLogin()
		in := signin.MFAAnswer{
			UserID: user, Code: fx.currentCode(), Origin: signin.Origin{Device: laptopInfo(t), Address: homeAddress},
		}
		got := callEach(fx.newInstances(2), func(_ int, s *signin.Service) error {
			_, err := s.VerifyMFA(t.Context(), in)
			return err
		})
		if got[""] != 1 || got[auth.CodeInvalidMFA] != 1 {
			t.Fatalf("answers %v, want one success", got)
		}
	}
	for _, e := range fx.findEvents(audit.LoginAttempt) {
		if !e.Success && e.Subject != "" {
			t.Errorf("%+v is told of the person", e)
		}
	}
}

// TestHashRenewedMeanwhile checks that a right password is accepted if its hash is renewed at the
// same time, and a replaced password refused.
func TestHashRenewedMeanwhile(t *testing.T) {
	fx := newFixture(t)
	fx.hasher.present = "v2"
	list := fx.newInstances(6)
	fx.hasher.holdUntil(len(list))
	hold := fx.hasher.hold
	var verified atomic.Int32
	fx.hasher.hold = func() { // a hash that is verified again is not held
		if int(verified.Add(1)) <= len(list) {
			hold()
		}
	}
	if codes := callEach(list, func(_ int, s *signin.Service) error {
		return fx.loginAt(s, password)
	}); codes[""] != len(list) {
		t.Errorf("answers %v, want %d successes", codes, len(list))
	}
	fx.hasher.hold = func() {
		fx.hasher.hold = nil
		fx.updateAccount(auth.UserID(fx.findEvents(audit.LoginAttempt)[0].Subject), func(a *auth.Account) {
			a.PasswordHash = fx.hasher.hashOf("v2", newPassword(t, "Another Horse 8!"))
		})
	}
	wantFault(t, "a password that is replaced meanwhile", fx.loginAt(list[0], password), fault.Unauthenticated,
		auth.CodeInvalidCredentials)
}
