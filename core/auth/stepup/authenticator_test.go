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
)

var authenticator = auth.TOTPSecret([]byte("an authenticator's 1"))

// enrol gives the person an active authenticator.
func (w *world) enrol() {
	w.t.Helper()
	f, err := auth.NewSecondFactor(auth.RootSecret(strings.Repeat("r", 32)))
	if err != nil {
		w.t.Fatal(err)
	}
	before := w.clock.Now().Add(-time.Hour)
	err = w.ports.Accounts.Update(context.Background(), user, func(a *auth.Account) error {
		return errors.Join(f.Enrol(a, authenticator, auth.Nonce{1}, auth.Enrolment{At: before}),
			f.Activate(a, authenticator.Code(auth.TOTPStep(before)), []auth.OTP{"aaaaa-bbbbb"}, "", before))
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) challenge() stepup.Pending {
	w.t.Helper()
	p, err := w.service.Initiate(context.Background(), w.session(), auth.AuthenticatorApp)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) appCode() auth.OTP { return authenticator.Code(auth.TOTPStep(w.clock.Now())) }

func wantCode(t *testing.T, what string, err error, kind fault.Kind, code fault.Code) {
	t.Helper()
	if f, ok := fault.As(err); !ok || f.Kind != kind || f.Code != code {
		t.Errorf("%s: %v, want %s %s", what, err, kind, code)
	}
}

func TestAuthenticator(t *testing.T) {
	w := newWorld(t)
	_, err := w.service.Initiate(context.Background(), w.session(), auth.AuthenticatorApp)
	wantCode(t, "not enrolled", err, fault.Invalid, auth.CodeValidation)
	if w.throttle.used != 0 {
		t.Errorf("%d tries counted", w.throttle.used)
	}
	w.enrol()
	p := w.challenge()
	if p.Method != auth.AuthenticatorApp || p.AttemptsRemaining != 3 || len(w.mail.messages) != 0 || w.throttle.used != 1 {
		t.Errorf("challenge %+v, %d messages, %d tries", p, len(w.mail.messages), w.throttle.used)
	}
	_, err = w.service.Resend(context.Background(), p.ID)
	wantCode(t, "resend", err, fault.Invalid, auth.CodeInvalidInput)
	_, err = w.verify(p, "aaaaa-bbbbb")
	wantCode(t, "recovery code", err, fault.Unauthenticated, auth.CodeInvalidOTP)
	passed, err := w.verify(p, w.appCode())
	if err != nil || passed.TrustLevel != auth.FullTrust || passed.DeviceToken == "" || w.session().TrustLevel != auth.FullTrust {
		t.Errorf("passed %+v, session at %s, %v", passed, w.session().TrustLevel, err)
	}
	_, err = w.verify(p, w.appCode())
	wantCode(t, "once more", err, fault.Invalid, auth.CodeInvalidInput)
	again := w.challenge()
	_, err = w.verify(again, w.appCode())
	wantCode(t, "the code for another challenge", err, fault.Unauthenticated, auth.CodeInvalidOTP)
	w.clock.advance(30 * time.Second)
	if _, err := w.verify(again, w.appCode()); err != nil {
		t.Errorf("the next code: %v", err)
	}
}

func TestAuthenticatorGuessesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.enrol()
	p := w.challenge()
	var mu sync.Mutex
	var all sync.WaitGroup
	codes := map[fault.Code]int{}
	for range 50 {
		all.Go(func() {
			_, err := w.verify(p, "000000")
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
	_, err := w.verify(p, w.appCode())
	wantCode(t, "the right code, too late", err, fault.Exhausted, auth.CodeRateLimit)
	if _, err := w.verify(w.challenge(), w.appCode()); err != nil {
		t.Errorf("a refused code was used up: %v", err)
	}
}
