package signin_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// instances returns services that share the world's records, as several processes do.
func (w *world) instances(n int) []*signin.Service {
	w.t.Helper()
	list := make([]*signin.Service, n)
	for i := range list {
		w.start(signin.Defaults())
		list[i] = w.service
	}
	return list
}

// meet makes the hasher hold each password until n of them are there.
func (h *hasher) meet(n int) {
	var arrived sync.WaitGroup
	arrived.Add(n)
	h.hold = func() {
		arrived.Done()
		arrived.Wait()
	}
}

// at calls each instance at once and counts the codes of what they return.
func at(list []*signin.Service, call func(i int, s *signin.Service) error) map[fault.Code]int {
	next := make(chan int, len(list))
	for i := range list {
		next <- i
	}
	return inParallel(len(list), func() error {
		i := <-next
		return call(i, list[i])
	})
}

func (w *world) loginAt(s *signin.Service, word string) error {
	_, err := s.Login(w.t.Context(), signin.Login{
		Email: anna, Password: secret(w.t, word), Visit: signin.Visit{Device: laptop(w.t), Address: home},
	})
	return err
}

// TestRightLoginsOnManyInstances wants no right login refused, counted or told as a failure, however few wrong ones are left.
func TestRightLoginsOnManyInstances(t *testing.T) {
	w := newWorld(t)
	for range 4 {
		_, _ = w.attempt("wrong") // its answer is TestLock's business
	}
	list := w.instances(8)
	w.hasher.meet(len(list))
	if codes := at(list, func(_ int, s *signin.Service) error { return w.loginAt(s, password) }); codes[""] != len(list) {
		t.Errorf("answers %v, want %d successes", codes, len(list))
	}
	w.hasher.hold = nil
	failed := 0
	for _, e := range w.events(auth.LoginAttempt) {
		if !e.Success {
			failed++
		}
	}
	if failed != 4 {
		t.Errorf("%d failed logins in the audit log, want the four wrong ones", failed)
	}
	for range 4 {
		_, err := w.attempt("wrong")
		wantFault(t, "a wrong password after right ones", err, fault.Unauthenticated, auth.CodeInvalidCredentials)
	}
}

// TestWrongLoginsOnManyInstances wants as many answered as the threshold, and a right one among the rest refused like them.
func TestWrongLoginsOnManyInstances(t *testing.T) {
	w := newWorld(t)
	list := w.instances(20)
	w.hasher.meet(len(list))
	codes := at(list, func(_ int, s *signin.Service) error { return w.loginAt(s, "wrong") })
	if codes[auth.CodeInvalidCredentials] != 5 || codes[auth.CodeAccountLocked] != 15 {
		t.Errorf("answers %v, want five looked at", codes)
	}
	if n := len(w.events(auth.SuspiciousActivity)); n != 1 {
		t.Errorf("%d suspicious activities, want one for the lock", n)
	}
}

// TestLockDuringALogin fills the count while a password is being verified, and wants a right one refused as a wrong one is, and
// the lock to stay.
func TestLockDuringALogin(t *testing.T) {
	for _, word := range []string{password, "wrong"} {
		for name, enrolled := range map[string]bool{"alone": false, "first of two steps": true} {
			t.Run(word+", "+name, func(t *testing.T) {
				w := newWorld(t)
				if enrolled {
					w.enrol()
				}
				list := w.instances(2)
				w.hasher.hold = func() {
					w.hasher.hold = nil
					for range 5 {
						_ = w.loginAt(list[1], "wrong") // its answer is TestLock's business
					}
				}
				for _, when := range []string{"under way", "later"} {
					wantFault(t, when, w.loginAt(list[0], word), fault.Forbidden, auth.CodeAccountLocked)
				}
				if n := len(w.events(auth.SuspiciousActivity)); n != 1 {
					t.Errorf("%d suspicious activities, want one for the lock", n)
				}
			})
		}
	}
}

// TestRecoveryCodesOnManyDevices wants right codes on as many devices at once to succeed.
func TestRecoveryCodesOnManyDevices(t *testing.T) {
	w := newWorld(t)
	user := w.enrol()
	second, err := auth.NewSecondFactor(root())
	if err != nil {
		t.Fatal(err)
	}
	var codes []auth.OTP
	for i := range 10 {
		codes = append(codes, auth.OTP(fmt.Sprintf("aaaaa-bbbb%c", 'a'+i)))
	}
	before := w.clock.Now().Add(-30 * time.Minute)
	w.update(user, func(a *auth.Account) {
		a.MFA.Active, a.MFA.Enrolment.At = false, before
		if err := second.Activate(a, authenticator.Code(auth.TOTPStep(before)), codes, "", before); err != nil {
			t.Error(err)
		}
	})
	list := w.instances(len(codes))
	answers := make([]signin.Answer, len(list))
	for i := range answers {
		device, err := auth.NewDeviceInfo(auth.DeviceFields{UserAgent: fmt.Sprint("device ", i)})
		if err != nil {
			t.Fatal(err)
		}
		answers[i] = signin.Answer{UserID: user, Code: codes[i], Visit: signin.Visit{Device: device, Address: home}}
		w.login(func(in *signin.Login) { in.Device = device })
	}
	got := at(list, func(i int, s *signin.Service) error { _, err := s.VerifyMFA(t.Context(), answers[i]); return err })
	if got[""] != len(list) {
		t.Errorf("answers %v, want %d successes", got, len(list))
	}
}

// TestOneAnswerTwice sends one right answer on two instances at once, and wants the second to count for nobody.
func TestOneAnswerTwice(t *testing.T) {
	w := newWorld(t)
	user := w.enrol()
	for range 10 {
		w.clock.advance(time.Minute)
		w.login()
		in := signin.Answer{UserID: user, Code: w.code(), Visit: signin.Visit{Device: laptop(t), Address: home}}
		got := at(w.instances(2), func(_ int, s *signin.Service) error { _, err := s.VerifyMFA(t.Context(), in); return err })
		if got[""] != 1 || got[auth.CodeInvalidMFA] != 1 {
			t.Fatalf("answers %v, want one success", got)
		}
	}
	for _, e := range w.events(auth.LoginAttempt) {
		if !e.Success && e.UserID != "" {
			t.Errorf("%+v is told of the person", e)
		}
	}
}

// TestHashRenewedMeanwhile wants a right password good whatever hash of it is stored at the end, and a replaced one refused.
func TestHashRenewedMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.hasher.present = "v2"
	list := w.instances(6)
	w.hasher.meet(len(list))
	hold := w.hasher.hold
	var verified atomic.Int32
	w.hasher.hold = func() { // a hash that is verified again is not held
		if int(verified.Add(1)) <= len(list) {
			hold()
		}
	}
	if codes := at(list, func(_ int, s *signin.Service) error { return w.loginAt(s, password) }); codes[""] != len(list) {
		t.Errorf("answers %v, want %d successes", codes, len(list))
	}
	w.hasher.hold = func() {
		w.hasher.hold = nil
		w.update(w.events(auth.LoginAttempt)[0].UserID, func(a *auth.Account) {
			a.PasswordHash = w.hasher.hashOf("v2", secret(t, "Another Horse 8!"))
		})
	}
	wantFault(t, "a password that is replaced meanwhile", w.loginAt(list[0], password), fault.Unauthenticated, auth.CodeInvalidCredentials)
}
