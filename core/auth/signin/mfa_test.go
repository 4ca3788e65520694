package signin_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

var (
	authenticator = auth.TOTPSecret([]byte("an authenticator's 1"))
	recoveryCode  = auth.OTP("aaaaa-bbbbb")
)

// enrolAuthenticator gives Anna an active authenticator with one recovery code.
func (fx *fixture) enrolAuthenticator() auth.UserID {
	fx.t.Helper()
	f, err := auth.NewSecondFactor(rootSecret())
	must.Succeed(fx.t, err)
	a, err := fx.ports.Accounts.ByEmail(context.Background(), anna)
	must.Succeed(fx.t, err)
	before := fx.clock.Now().Add(-time.Hour)
	err = fx.ports.Accounts.Update(context.Background(), a.ID, func(a *auth.Account) error {
		return errors.Join(f.Enrol(a, authenticator, auth.Nonce{1}, auth.Enrolment{At: before}),
			f.Activate(a, authenticator.Code(auth.TOTPStep(before)), []auth.OTP{recoveryCode}, "", before))
	})
	must.Succeed(fx.t, err)
	return a.ID
}

func (fx *fixture) currentCode() auth.OTP { return authenticator.Code(auth.TOTPStep(fx.clock.Now())) }

// tryCode sends a code from the laptop at home.
func (fx *fixture) tryCode(user auth.UserID, code auth.OTP, changes ...func(*signin.MFAAnswer)) (signin.Result, error) {
	in := signin.MFAAnswer{
		UserID: user, Code: code, Origin: signin.Origin{Device: laptopInfo(fx.t), Address: homeAddress},
	}
	for _, change := range changes {
		change(&in)
	}
	return fx.service.VerifyMFA(context.Background(), in)
}

// loginMFA is a login of both steps.
func (fx *fixture) loginMFA(user auth.UserID, changes ...func(*signin.Login)) signin.Result {
	fx.t.Helper()
	if r := fx.mustLogin(changes...); !r.MFARequired || r.UserID != user || r.AccessToken != "" ||
		r.RefreshToken != "" || r.SessionID != "" {
		fx.t.Fatalf("the first step gives %+v", r)
	}
	r, err := fx.tryCode(user, fx.currentCode())
	must.Succeed(fx.t, err)
	fx.clock.Advance(time.Minute) // so that the next code is another one
	return r
}

func (fx *fixture) updateAccount(user auth.UserID, change func(*auth.Account)) {
	fx.t.Helper()
	err := fx.ports.Accounts.Update(context.Background(), user, func(a *auth.Account) error { change(a); return nil })
	must.Succeed(fx.t, err)
}

func TestMFAConfirmsTheDevice(t *testing.T) {
	fx := newFixture(t)
	user := fx.enrolAuthenticator()
	r := fx.loginMFA(user)
	s := fx.getSession(r.SessionID)
	if r.TrustLevel != auth.FullTrust || s.RiskScore != 30 || r.AccessToken == "" || r.RefreshToken == "" {
		t.Errorf("%+v with score %d, want FULL_TRUST and that of an unknown device", r, s.RiskScore)
	}
	d, err := fx.ports.Devices.Get(context.Background(), s.DeviceID)
	if err != nil || !d.Confirmed {
		t.Errorf("device %+v, %v", d, err)
	}
	if token, err := fx.ports.DeviceTokens.Find(context.Background(), auth.HashSecret(r.DeviceToken)); err != nil ||
		token.DeviceID != d.ID {
		t.Errorf("device token %+v, %v", token, err)
	}
	fx.clock.Advance(time.Hour)
	fx.loginMFA(user, withDeviceToken(r.DeviceToken))
	wantEqual(t, fx.riskFactors().Number("deviceFamiliarity"), 15, "the confirmed device scores")
}

// TestWhatASecondFactorIsWorth signs in with each factor at each kind of score: a code of the
// authenticator is a step-up, a recovery code is not, and both confirm the device. The mark TRUSTED
// counts from the next sign-in on.
func TestWhatASecondFactorIsWorth(t *testing.T) {
	for name, c := range map[string]struct {
		failures        int // before the sign-in, from another device
		recovery, trust bool
		level           auth.TrustLevel
		next            auth.TrustLevel // of a password alone on the same device, later
	}{
		"code":                       {level: auth.FullTrust, next: auth.LimitedTrust},
		"code, trusted":              {trust: true, level: auth.FullTrust, next: auth.FullTrust},
		"code, moderate risk":        {failures: 1, level: auth.FullTrust, next: auth.LimitedTrust},
		"code, elevated risk":        {failures: 4, level: auth.FullTrust, next: auth.LimitedTrust},
		"code, high risk":            {failures: 6, level: auth.HighRisk, next: auth.LimitedTrust},
		"code, high risk, trusted":   {failures: 6, trust: true, level: auth.HighRisk, next: auth.FullTrust},
		"recovery code":              {recovery: true, level: auth.LimitedTrust, next: auth.LimitedTrust},
		"recovery code, trusted":     {recovery: true, trust: true, level: auth.LimitedTrust, next: auth.FullTrust},
		"recovery code, higher risk": {recovery: true, failures: 4, level: auth.Unverified, next: auth.LimitedTrust},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, func(c *signin.Config) { c.Lockout.Threshold = 100 })
			user := fx.enrolAuthenticator()
			for range c.failures {
				_, _ = fx.tryLogin("Wrong Horse 9!")
			}
			fx.mustLogin()
			code := fx.currentCode()
			if c.recovery {
				code = recoveryCode
			}
			r, err := fx.tryCode(user, code, func(in *signin.MFAAnswer) { in.TrustDevice = c.trust })
			if err != nil || r.TrustLevel != c.level || r.DeviceToken == "" {
				t.Fatalf("%+v, %v, want %s and a device token", r, err, c.level)
			}
			s := fx.getSession(r.SessionID)
			d, err := fx.ports.Devices.Get(context.Background(), s.DeviceID)
			if err != nil || s.TrustLevel != c.level || !d.Confirmed || d.Trusted() != c.trust {
				t.Errorf("session %+v, device %+v, %v", s, d, err)
			}
			evaluation := fx.findEvents(audit.RiskEvaluation)[0]
			wantEqual(t, evaluation.Details.Text("trustLevel"), c.level.String(), "RISK_EVALUATION")
			marks := 0
			for _, e := range fx.findEvents(audit.DeviceChange) {
				if e.Action() == "trust" {
					marks++
				}
			}
			if (marks == 1) != c.trust {
				t.Errorf("%d marks in the audit log", marks)
			}
			fx.updateAccount(user, func(a *auth.Account) { a.MFA = auth.MFA{} })
			fx.clock.Advance(time.Hour)
			if r := fx.mustLogin(withDeviceToken(r.DeviceToken)); r.TrustLevel != c.next {
				t.Errorf("the next sign-in is at %s, want %s", r.TrustLevel, c.next)
			}
		})
	}
}

// TestDeviceTokenAtOneOfTheSteps checks that the token counts at either step. The code is a recovery
// code, which leaves the level to score and device.
func TestDeviceTokenAtOneOfTheSteps(t *testing.T) {
	for _, step := range []string{"first", "second", "neither"} {
		fx := newFixture(t)
		user := fx.enrolAuthenticator()
		first := fx.loginMFA(user)
		token := fx.confirmDevice(first.SessionID, auth.DeviceTrusted)
		fx.clock.Advance(time.Hour)
		var err error
		var r signin.Result
		switch step {
		case "first":
			fx.mustLogin(withDeviceToken(token))
			r, err = fx.tryCode(user, recoveryCode)
		case "second":
			fx.mustLogin()
			r, err = fx.tryCode(user, recoveryCode, func(in *signin.MFAAnswer) { in.DeviceToken = token })
		default:
			fx.mustLogin()
			r, err = fx.tryCode(user, recoveryCode)
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
	fx := newFixture(t)
	user := fx.enrolAuthenticator()
	fx.mustLogin()
	if _, err := fx.tryCode(user, "000000"); err == nil {
		t.Fatal("000000 is taken")
	}
	if len(fx.findEvents(audit.RiskEvaluation)) != 0 || len(fx.findEvents(audit.DeviceChange)) != 0 {
		t.Error("half a login is scored or records its device")
	}
	if _, err := fx.tryCode(user, recoveryCode); err != nil {
		t.Fatal(err)
	}
	got := fx.findEvents(audit.LoginAttempt) // newest first
	if len(got) != 3 || len(fx.findEvents(audit.RiskEvaluation)) != 1 || len(fx.findEvents(audit.DeviceChange)) != 1 {
		t.Fatalf("events %+v", fx.findEvents(""))
	}
	for i, want := range []audit.Details{
		{"step": audit.Text("mfa"), "factor": audit.Text("recovery_code"), "trustLevel": audit.Text("LIMITED_TRUST")},
		{"step": audit.Text("mfa"), "reason": audit.Text("invalid_mfa")}, {"mfaRequired": audit.Flag(true)},
	} {
		for name, value := range want {
			if got[i].Details[name] != value || got[i].Success != (i != 1) || got[i].Subject != audit.Subject(user) {
				t.Errorf("event %d is %+v, want %s %v", i, got[i], name, value)
			}
		}
	}
	for _, secret := range []string{string(recoveryCode), "aaaaabbbbb", "000000", authenticator.Base32()} {
		if strings.Contains(fx.auditText(), secret) {
			t.Errorf("the audit log holds %s", secret)
		}
	}
}

// TestMFAWithoutALogin checks that a code without a password step is refused as for an unknown
// person, and not counted.
func TestMFAWithoutALogin(t *testing.T) {
	fx := newFixture(t)
	user := fx.enrolAuthenticator()
	other, err := auth.NewDeviceInfo(auth.DeviceFields{UserAgent: "another"})
	must.Succeed(t, err)
	refused := func(what string, err error) {
		t.Helper()
		wantFault(t, what, err, fault.Unauthenticated, auth.CodeInvalidMFA)
	}
	for range 10 {
		_, err = fx.tryCode(user, fx.currentCode())
		refused("no login", err)
	}
	if n := len(fx.findEvents(audit.LoginAttempt)); n != 10 || fx.findEvents(audit.LoginAttempt)[0].Subject != "" {
		t.Errorf("%d events, the last %+v", n, fx.findEvents(audit.LoginAttempt)[0])
	}
	_, err = fx.tryCode("66666666-7777-4888-8999-aaaaaaaaaaaa", fx.currentCode())
	refused("nobody", err)
	fx.mustLogin()
	_, err = fx.tryCode(user, fx.currentCode(), func(in *signin.MFAAnswer) { in.Device = other })
	refused("another device", err)
	fx.clock.Advance(5 * time.Minute)
	_, err = fx.tryCode(user, fx.currentCode())
	refused("too late", err)
	fx.mustLogin()
	if _, err = fx.tryCode(user, fx.currentCode(), func(in *signin.MFAAnswer) {
		in.Address = netip.MustParseAddr("2001:db8::1")
	}); err != nil {
		t.Errorf("from another address: %v", err)
	}
	fx.clock.Advance(time.Minute)
	_, err = fx.tryCode(user, fx.currentCode())
	refused("once more", err)
}

// TestMFAAfterALoginOfAClockThatWasAhead checks that a login that a clock that was ahead has
// recorded does not wait for its code for longer than others, and that the next login is not
// affected.
func TestMFAAfterALoginOfAClockThatWasAhead(t *testing.T) {
	fx := newFixture(t)
	user := fx.enrolAuthenticator()
	fx.clock.Advance(time.Hour)
	fx.mustLogin()
	fx.clock.Advance(-time.Hour)
	_, err := fx.tryCode(user, fx.currentCode())
	wantFault(t, "a login of an hour ahead", err, fault.Unauthenticated, auth.CodeInvalidMFA)
	fx.mustLogin()
	if _, err := fx.tryCode(user, fx.currentCode()); err != nil {
		t.Errorf("the next login: %v", err)
	}
}

func TestMFAOfLockedAndDisabled(t *testing.T) {
	fx := newFixture(t)
	user := fx.enrolAuthenticator()
	fx.mustLogin()
	fx.updateAccount(user, func(a *auth.Account) { a.State = auth.AccountLocked })
	_, err := fx.tryCode(user, fx.currentCode())
	wantFault(t, "locked", err, fault.Forbidden, auth.CodeAccountLocked)
	_, err = fx.tryCode(user, "000000")
	wantFault(t, "locked, wrong code", err, fault.Forbidden, auth.CodeAccountLocked)
	fx.updateAccount(user, func(a *auth.Account) { a.State = auth.AccountDisabled })
	_, err = fx.tryCode(user, fx.currentCode())
	wantFault(t, "disabled", err, fault.Unauthenticated, auth.CodeInvalidMFA)
	fx.updateAccount(user, func(a *auth.Account) { a.State = auth.AccountActive })
	if _, err := fx.tryCode(user, fx.currentCode()); err != nil {
		t.Errorf("what was refused used the code up: %v", err)
	}
}

// TestProofOfARevokedDevice checks that a token of the first step counts for its own device only,
// and not for a device with the same fields that replaced it before the second step.
func TestProofOfARevokedDevice(t *testing.T) {
	fx := newFixture(t, func(c *signin.Config) { c.MFAPolicy = signin.MFAAlways })
	first := fx.mustLogin()
	token := fx.confirmDevice(first.SessionID, auth.DeviceTrusted)
	user := fx.enrolAuthenticator()
	fx.mustLogin(withDeviceToken(token)) // waits for its code, with a token shown
	fx.clock.Advance(time.Second)
	device := fx.getSession(first.SessionID).DeviceID
	err := fx.ports.Devices.Update(t.Context(), device, func(d *auth.Device) error { d.Revoked = true; return nil })
	must.Succeed(t, err)
	old, err := fx.ports.Devices.Get(t.Context(), device)
	must.Succeed(t, err)
	old.ID, old.Revoked, old.Confirmed, old.TrustStatus, old.FirstSeen = "another", false, true, auth.DeviceTrusted,
		fx.clock.Now()
	if _, _, err := fx.ports.Devices.Ensure(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	r, err := fx.tryCode(user, recoveryCode)
	if err != nil || r.TrustLevel != auth.LimitedTrust {
		t.Errorf("level %s, %v; want LIMITED_TRUST", r.TrustLevel, err)
	}
}

// TestPasswordAndMFACountTogether checks that five failures of both kinds lock, and that only a
// complete login resets the count.
func TestPasswordAndMFACountTogether(t *testing.T) {
	fx := newFixture(t)
	user := fx.enrolAuthenticator()
	for range 2 {
		_, err := fx.tryLogin("Wrong Horse 9!")
		wantFault(t, "wrong password", err, fault.Unauthenticated, auth.CodeInvalidCredentials)
	}
	for range 3 {
		fx.mustLogin() // a right password resets nothing
		_, err := fx.tryCode(user, "000000")
		wantFault(t, "wrong code", err, fault.Unauthenticated, auth.CodeInvalidMFA)
	}
	_, err := fx.tryCode(user, fx.currentCode())
	wantFault(t, "right code, locked", err, fault.Forbidden, auth.CodeAccountLocked)
	_, err = fx.tryLogin(password)
	wantFault(t, "right password, locked", err, fault.Forbidden, auth.CodeAccountLocked)
	wantEqual(t, len(fx.findEvents(audit.SuspiciousActivity)), 1, "suspicious activities")
	fx.clock.Advance(15 * time.Minute)
	for range 4 {
		_, _ = fx.tryLogin("Wrong Horse 9!")
	}
	fx.loginMFA(user)
	for range 4 {
		_, _ = fx.tryLogin("Wrong Horse 9!")
	}
	fx.loginMFA(user) // would be locked if the complete login had not reset the count
}

func TestParallelAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		code  func(fx *fixture, i int) auth.OTP
		right int
	}{
		"one code":          {func(fx *fixture, _ int) auth.OTP { return fx.currentCode() }, 1},
		"one recovery code": {func(*fixture, int) auth.OTP { return recoveryCode }, 1},
		"wrong codes":       {func(*fixture, int) auth.OTP { return "000000" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			user := fx.enrolAuthenticator()
			fx.mustLogin()
			var mu sync.Mutex
			var all sync.WaitGroup
			codes, right := map[fault.Code]int{}, 0
			for i := range 50 {
				all.Go(func() {
					_, err := fx.tryCode(user, c.code(fx, i))
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
			wantEqual(t, right, c.right, "the codes that were taken")
			if c.right == 0 && (codes[auth.CodeInvalidMFA] != 5 || codes[auth.CodeAccountLocked] != 45) {
				t.Errorf("answers %v, want five evaluated", codes)
			}
		})
	}
}

func TestMFAPolicyRisk(t *testing.T) {
	fx := newFixture(t, func(c *signin.Config) { c.MFAPolicy = signin.MFARisk })
	user := fx.enrolAuthenticator()
	first := fx.loginMFA(user) // an unknown device scores 30
	token := fx.confirmDevice(first.SessionID, auth.DeviceTrusted)
	fx.clock.Advance(time.Hour)
	if r := fx.mustLogin(withDeviceToken(token)); r.MFARequired || r.TrustLevel != auth.FullTrust {
		t.Errorf("a trusted device that proves itself gets %+v", r)
	}
	fx.clock.Advance(time.Hour)
	for range 3 {
		_, _ = fx.tryLogin("Wrong Horse 9!", withDeviceToken(token))
	}
	if r := fx.mustLogin(withDeviceToken(token)); !r.MFARequired {
		t.Errorf("after failures the trusted device gets %+v", r)
	}
}

// TestAuthenticatorThatIsGone checks that a login does not wait for an authenticator that was
// removed in the meantime.
func TestAuthenticatorThatIsGone(t *testing.T) {
	fx := newFixture(t)
	user := fx.enrolAuthenticator()
	fx.mustLogin()
	fx.updateAccount(user, func(a *auth.Account) { a.MFA = auth.MFA{} })
	_, err := fx.tryCode(user, fx.currentCode())
	wantFault(t, "gone", err, fault.Unauthenticated, auth.CodeInvalidMFA)
	if r := fx.mustLogin(); r.MFARequired || r.AccessToken == "" {
		t.Errorf("login gives %+v", r)
	}
}
