package stepup_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

var authenticator = auth.TOTPSecret([]byte("an authenticator's 1"))

// enrolAuthenticator gives the person an active authenticator.
func (fx *fixture) enrolAuthenticator() {
	fx.t.Helper()
	f, err := auth.NewSecondFactor(auth.RootSecret(strings.Repeat("r", 32)))
	must.Succeed(fx.t, err)
	before := fx.clock.Now().Add(-time.Hour)
	err = fx.ports.Accounts.Update(context.Background(), user, func(a *auth.Account) error {
		return errors.Join(f.Enrol(a, authenticator, auth.Nonce{1}, auth.Enrolment{At: before}),
			f.Activate(a, authenticator.Code(auth.TOTPStep(before)), []auth.OTP{"aaaaa-bbbbb"}, "", before))
	})
	must.Succeed(fx.t, err)
}

func (fx *fixture) newChallenge() stepup.Pending {
	fx.t.Helper()
	p, err := fx.service.Initiate(context.Background(), fx.getSession(), auth.AuthenticatorApp)
	must.Succeed(fx.t, err)
	return p
}

func (fx *fixture) appCode() auth.OTP { return authenticator.Code(auth.TOTPStep(fx.clock.Now())) }

func wantCode(t *testing.T, what string, err error, kind fault.Kind, code fault.Code) {
	t.Helper()
	if f, ok := fault.As(err); !ok || f.Kind != kind || f.Code != code {
		t.Errorf("%s: %v, want %s %s", what, err, kind, code)
	}
}

func TestAuthenticator(t *testing.T) {
	fx := newFixture(t)
	_, err := fx.service.Initiate(context.Background(), fx.getSession(), auth.AuthenticatorApp)
	wantCode(t, "not enrolled", err, fault.Invalid, auth.CodeValidation)
	wantEqual(t, fx.throttle.used, 0, "tries counted")
	fx.enrolAuthenticator()
	p := fx.newChallenge()
	if p.Method != auth.AuthenticatorApp || p.AttemptsRemaining != 3 || len(fx.mail.messages) != 0 ||
		fx.throttle.used != 1 {
		t.Errorf("challenge %+v, %d messages, %d tries", p, len(fx.mail.messages), fx.throttle.used)
	}
	_, err = fx.service.Resend(context.Background(), p.ID)
	wantCode(t, "resend", err, fault.Invalid, auth.CodeInvalidInput)
	_, err = fx.tryCode(p, "aaaaa-bbbbb")
	wantCode(t, "recovery code", err, fault.Unauthenticated, auth.CodeInvalidOTP)
	passed, err := fx.tryCode(p, fx.appCode())
	if err != nil || passed.TrustLevel != auth.FullTrust || passed.DeviceToken == "" ||
		fx.getSession().TrustLevel != auth.FullTrust {
		t.Errorf("passed %+v, session at %s, %v", passed, fx.getSession().TrustLevel, err)
	}
	_, err = fx.tryCode(p, fx.appCode())
	wantCode(t, "once more", err, fault.Invalid, auth.CodeInvalidInput)
	again := fx.newChallenge()
	_, err = fx.tryCode(again, fx.appCode())
	wantCode(t, "the code for another challenge", err, fault.Unauthenticated, auth.CodeInvalidOTP)
	fx.clock.Advance(30 * time.Second)
	if _, err := fx.tryCode(again, fx.appCode()); err != nil {
		t.Errorf("the next code: %v", err)
	}
}

func TestAuthenticatorGuessesAreBounded(t *testing.T) {
	fx := newFixture(t)
	fx.enrolAuthenticator()
	p := fx.newChallenge()
	var mu sync.Mutex
	var all sync.WaitGroup
	codes := map[fault.Code]int{}
	for range 50 {
		all.Go(func() {
			_, err := fx.tryCode(p, "000000")
			f, ok := fault.As(err)
			mu.Lock()
			defer mu.Unlock()
			if ok {
				codes[f.Code]++
			}
		})
	}
	all.Wait()
	if codes[auth.CodeInvalidOTP] != 3 || codes[auth.CodeRateLimit] != 47 {
		t.Errorf("answers %v, want three evaluated", codes)
	}
	_, err := fx.tryCode(p, fx.appCode())
	wantCode(t, "the right code, too late", err, fault.Exhausted, auth.CodeRateLimit)
	if _, err := fx.tryCode(fx.newChallenge(), fx.appCode()); err != nil {
		t.Errorf("a refused code was used up: %v", err)
	}
}
