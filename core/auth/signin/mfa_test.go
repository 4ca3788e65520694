package signin_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/fault"
)

var (
	authenticator = auth.TOTPSecret([]byte("an authenticator's 1"))
	spare         = auth.OTP("aaaaa-bbbbb")
)

// enrol gives Anna an active authenticator with one recovery code.
func (w *world) enrol() auth.UserID {
	w.t.Helper()
	f, err := auth.NewSecondFactor(root())
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := w.ports.Accounts.ByEmail(context.Background(), anna)
	if err != nil {
		w.t.Fatal(err)
	}
	before := w.clock.Now().Add(-time.Hour)
	err = w.ports.Accounts.Update(context.Background(), a.ID, func(a *auth.Account) error {
		return errors.Join(f.Enrol(a, authenticator, auth.Nonce{1}, auth.Enrolment{At: before}),
			f.Activate(a, authenticator.Code(auth.TOTPStep(before)), []auth.OTP{spare}, "", before))
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return a.ID
}

func (w *world) code() auth.OTP { return authenticator.Code(auth.TOTPStep(w.clock.Now())) }

// verify answers from the laptop at home.
func (w *world) verify(user auth.UserID, code auth.OTP, changes ...func(*signin.Answer)) (signin.Result, error) {
	in := signin.Answer{UserID: user, Code: code, Visit: signin.Visit{Device: laptop(w.t), Address: home}}
	for _, change := range changes {
		change(&in)
	}
	return w.service.VerifyMFA(context.Background(), in)
}

// loginMFA is a login of both steps.
func (w *world) loginMFA(user auth.UserID, changes ...func(*signin.Login)) signin.Result {
	w.t.Helper()
	if r := w.login(changes...); !r.MFARequired || r.UserID != user || r.AccessToken != "" || r.RefreshToken != "" || r.SessionID != "" {
		w.t.Fatalf("the first step gives %+v", r)
	}
	r, err := w.verify(user, w.code())
	if err != nil {
		w.t.Fatal(err)
	}
	w.clock.advance(time.Minute) // so that the next code is another one
	return r
}

func (w *world) update(user auth.UserID, change func(*auth.Account)) {
	w.t.Helper()
	err := w.ports.Accounts.Update(context.Background(), user, func(a *auth.Account) error { change(a); return nil })
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestMFAConfirmsTheDevice(t *testing.T) {
	w := newWorld(t)
	user := w.enrol()
	r := w.loginMFA(user)
	s := w.session(r.SessionID)
	if r.TrustLevel != auth.LimitedTrust || s.RiskScore != 30 || r.AccessToken == "" || r.RefreshToken == "" {
		t.Errorf("%+v with score %d, want LIMITED_TRUST and that of an unknown device", r, s.RiskScore)
	}
	d, err := w.ports.Devices.Get(context.Background(), s.DeviceID)
	if err != nil || !d.Confirmed {
		t.Errorf("device %+v, %v", d, err)
	}
	if token, err := w.ports.DeviceTokens.Find(context.Background(), auth.HashSecret(r.DeviceToken)); err != nil || token.DeviceID != d.ID {
		t.Errorf("device token %+v, %v", token, err)
	}
	w.clock.advance(time.Hour)
	w.loginMFA(user, shows(r.DeviceToken))
	if got := w.factors()["deviceFamiliarity"]; got != 15.0 {
		t.Errorf("the confirmed device scores %v", got)
	}
}

// TestDeviceTokenAtOneOfTheSteps wants it to count at either.
func TestDeviceTokenAtOneOfTheSteps(t *testing.T) {
	for _, step := range []string{"first", "second", "neither"} {
		w := newWorld(t)
		user := w.enrol()
		first := w.loginMFA(user)
		token := w.confirm(first.SessionID, auth.DeviceTrusted)
		w.clock.advance(time.Hour)
		var err error
		var r signin.Result
		switch step {
		case "first":
			w.login(shows(token))
			r, err = w.verify(user, w.code())
		case "second":
			w.login()
			r, err = w.verify(user, w.code(), func(in *signin.Answer) { in.DeviceToken = token })
		default:
			w.login()
			r, err = w.verify(user, w.code())
		}
		want := auth.FullTrust
		if step == "neither" {
			want = auth.LimitedTrust
		}
		if err != nil || r.TrustLevel != want {
			t.Errorf("shown at %s: %s, %v, want %s", step, r.TrustLevel, err, want)
		}
	}
}

func TestMFAEvents(t *testing.T) {
	w := newWorld(t)
	user := w.enrol()
	w.login()
	if _, err := w.verify(user, "000000"); err == nil {
		t.Fatal("000000 is taken")
	}
	if len(w.events(auth.RiskEvaluation)) != 0 || len(w.events(auth.DeviceChange)) != 0 {
		t.Error("half a login is scored or records its device")
	}
	if _, err := w.verify(user, spare); err != nil {
		t.Fatal(err)
	}
	got := w.events(auth.LoginAttempt) // newest first
	if len(got) != 3 || len(w.events(auth.RiskEvaluation)) != 1 || len(w.events(auth.DeviceChange)) != 1 {
		t.Fatalf("events %+v", w.events(""))
	}
	for i, want := range []map[string]any{
		{"step": "mfa", "factor": "recovery_code", "trustLevel": "LIMITED_TRUST"}, {"step": "mfa", "reason": "invalid_mfa"}, {"mfaRequired": true},
	} {
		for name, value := range want {
			if got[i].Details[name] != value || got[i].Success != (i != 1) || got[i].UserID != user {
				t.Errorf("event %d is %+v, want %s %v", i, got[i], name, value)
			}
		}
	}
	for _, secret := range []string{string(spare), "aaaaabbbbb", "000000", authenticator.Base32()} {
		if strings.Contains(w.text(), secret) {
			t.Errorf("the audit log holds %s", secret)
		}
	}
}

// TestMFAWithoutALogin wants an answer without a password step refused as for an unknown person, and counted to nobody.
func TestMFAWithoutALogin(t *testing.T) {
	w := newWorld(t)
	user := w.enrol()
	other, err := auth.NewDeviceInfo(auth.DeviceFields{UserAgent: "another"})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		wantFault(t, what, err, fault.Unauthenticated, auth.CodeInvalidMFA)
	}
	for range 10 {
		_, err = w.verify(user, w.code())
		refused("no login", err)
	}
	if n := len(w.events(auth.LoginAttempt)); n != 10 || w.events(auth.LoginAttempt)[0].UserID != "" {
		t.Errorf("%d events, the last %+v", n, w.events(auth.LoginAttempt)[0])
	}
	_, err = w.verify("66666666-7777-4888-8999-aaaaaaaaaaaa", w.code())
	refused("nobody", err)
	w.login()
	_, err = w.verify(user, w.code(), func(in *signin.Answer) { in.Device = other })
	refused("another device", err)
	w.clock.advance(5 * time.Minute)
	_, err = w.verify(user, w.code())
	refused("too late", err)
	w.login()
	if _, err = w.verify(user, w.code(), func(in *signin.Answer) { in.Address = netip.MustParseAddr("2001:db8::1") }); err != nil {
		t.Errorf("from another address: %v", err)
	}
	w.clock.advance(time.Minute)
	_, err = w.verify(user, w.code())
	refused("once more", err)
}

func TestMFAOfThoseShutOut(t *testing.T) {
	w := newWorld(t)
	user := w.enrol()
	w.login()
	w.update(user, func(a *auth.Account) { a.State = auth.AccountLocked })
	_, err := w.verify(user, w.code())
	wantFault(t, "locked", err, fault.Forbidden, auth.CodeAccountLocked)
	_, err = w.verify(user, "000000")
	wantFault(t, "locked, wrong code", err, fault.Forbidden, auth.CodeAccountLocked)
	w.update(user, func(a *auth.Account) { a.State = auth.AccountDisabled })
	_, err = w.verify(user, w.code())
	wantFault(t, "disabled", err, fault.Unauthenticated, auth.CodeInvalidMFA)
	w.update(user, func(a *auth.Account) { a.State = auth.AccountActive })
	if _, err := w.verify(user, w.code()); err != nil {
		t.Errorf("what was refused used the code up: %v", err)
	}
}

// TestProofOfARevokedDevice wants a token that was shown at the first step to count for the device that it belongs to, and not for one
// that took its place, with the same fields, before the second step.
func TestProofOfARevokedDevice(t *testing.T) {
	w := newWorld(t, func(c *signin.Config) { c.MFAPolicy = signin.MFAAlways })
	first := w.login()
	token := w.confirm(first.SessionID, auth.DeviceTrusted)
	user := w.enrol()
	w.login(shows(token)) // waits for its code, with a token shown
	w.clock.advance(time.Second)
	device := w.session(first.SessionID).DeviceID
	err := w.ports.Devices.Update(t.Context(), device, func(d *auth.Device) error { d.Revoked = true; return nil })
	if err != nil {
		t.Fatal(err)
	}
	old, err := w.ports.Devices.Get(t.Context(), device)
	if err != nil {
		t.Fatal(err)
	}
	old.ID, old.Revoked, old.Confirmed, old.TrustStatus, old.FirstSeen = "another", false, true, auth.DeviceTrusted, w.clock.Now()
	if _, _, err := w.ports.Devices.Ensure(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	r, err := w.verify(user, w.code())
	if err != nil || r.TrustLevel != auth.LimitedTrust {
		t.Errorf("level %s, %v; want LIMITED_TRUST", r.TrustLevel, err)
	}
}

// TestPasswordAndMFACountTogether wants five failures of both to lock, and a complete login alone to reset the count.
func TestPasswordAndMFACountTogether(t *testing.T) {
	w := newWorld(t)
	user := w.enrol()
	for range 2 {
		_, err := w.attempt("Wrong Horse 9!")
		wantFault(t, "wrong password", err, fault.Unauthenticated, auth.CodeInvalidCredentials)
	}
	for range 3 {
		w.login() // a right password resets nothing
		_, err := w.verify(user, "000000")
		wantFault(t, "wrong code", err, fault.Unauthenticated, auth.CodeInvalidMFA)
	}
	_, err := w.verify(user, w.code())
	wantFault(t, "right code, locked", err, fault.Forbidden, auth.CodeAccountLocked)
	_, err = w.attempt(password)
	wantFault(t, "right password, locked", err, fault.Forbidden, auth.CodeAccountLocked)
	if n := len(w.events(auth.SuspiciousActivity)); n != 1 {
		t.Errorf("%d suspicious activities, want the lock", n)
	}
	w.clock.advance(15 * time.Minute)
	for range 4 {
		_, _ = w.attempt("Wrong Horse 9!")
	}
	w.loginMFA(user)
	for range 4 {
		_, _ = w.attempt("Wrong Horse 9!")
	}
	w.loginMFA(user) // would be locked if the complete login had not reset the count
}

func TestParallelAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		code  func(w *world, i int) auth.OTP
		right int
	}{
		"one code":          {func(w *world, _ int) auth.OTP { return w.code() }, 1},
		"one recovery code": {func(*world, int) auth.OTP { return spare }, 1},
		"wrong codes":       {func(*world, int) auth.OTP { return "000000" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			user := w.enrol()
			w.login()
			var mu sync.Mutex
			var all sync.WaitGroup
			codes, right := map[fault.Code]int{}, 0
			for i := range 50 {
				all.Go(func() {
					_, err := w.verify(user, c.code(w, i))
					mu.Lock()
					defer mu.Unlock()
					if f, ok := fault.As(err); ok {
						codes[f.Code]++
					} else if err == nil {
						right++
					}
				})
			}
			all.Wait()
			if right != c.right {
				t.Errorf("%d were right, want %d", right, c.right)
			}
			if c.right == 0 && (codes[auth.CodeInvalidMFA] != 5 || codes[auth.CodeAccountLocked] != 45) {
				t.Errorf("answers %v, want five evaluated", codes)
			}
		})
	}
}

func TestMFAPolicyRisk(t *testing.T) {
	w := newWorld(t, func(c *signin.Config) { c.MFAPolicy = signin.MFARisk })
	user := w.enrol()
	first := w.loginMFA(user) // an unknown device scores 30
	token := w.confirm(first.SessionID, auth.DeviceTrusted)
	w.clock.advance(time.Hour)
	if r := w.login(shows(token)); r.MFARequired || r.TrustLevel != auth.FullTrust {
		t.Errorf("a trusted device that proves itself gets %+v", r)
	}
	w.clock.advance(time.Hour)
	for range 3 {
		_, _ = w.attempt("Wrong Horse 9!", shows(token))
	}
	if r := w.login(shows(token)); !r.MFARequired {
		t.Errorf("after failures the trusted device gets %+v", r)
	}
}

// TestAuthenticatorThatIsGone wants no login to wait for one that was taken away meanwhile.
func TestAuthenticatorThatIsGone(t *testing.T) {
	w := newWorld(t)
	user := w.enrol()
	w.login()
	w.update(user, func(a *auth.Account) { a.MFA = auth.MFA{} })
	_, err := w.verify(user, w.code())
	wantFault(t, "gone", err, fault.Unauthenticated, auth.CodeInvalidMFA)
	if r := w.login(); r.MFARequired || r.AccessToken == "" {
		t.Errorf("login gives %+v", r)
	}
}
