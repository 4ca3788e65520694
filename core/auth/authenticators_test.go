package auth_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// addAuthenticator adds a further authenticator with a secret of one byte to an account.
func addAuthenticator(t *testing.T, f auth.SecondFactor, a *auth.Account, n byte, at time.Time) auth.TOTPSecret {
	t.Helper()
	secret := auth.TOTPSecret{n}
	next := auth.Authenticator{Name: fmt.Sprint("app ", n), Enrolment: auth.Enrolment{At: at, SessionID: "s"}}
	must.Succeed(t, f.EnrolAnother(a, next, secret, auth.Nonce{n}))
	if name, err := f.ActivateAnother(a, secret.Code(auth.TOTPStep(at)), "s", at); err != nil || name != next.Name {
		t.Fatal(name, err)
	}
	return secret
}

func wantKind(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
	}
}

// TestSeveralAuthenticators checks that the codes of each are accepted once, that there are at most
// five, and that any of them can be removed while another stays.
func TestSeveralAuthenticators(t *testing.T) {
	t.Parallel()
	f, now := newSecondFactor(t, "r"), time.Unix(1_800_000_000, 0)
	a := newEnrolledAccount(t, f, now.Add(-time.Hour), "aaaaa-bbbbb")
	secrets := []auth.TOTPSecret{rfcSecret}
	for n := range byte(auth.MaxAuthenticators - 1) {
		secrets = append(secrets, addAuthenticator(t, f, &a, n+1, now))
	}
	wantKind(t, "a sixth", f.EnrolAnother(&a, auth.Authenticator{}, rfcSecret, auth.Nonce{9}), fault.Conflict)
	now = now.Add(time.Hour)
	for i, secret := range secrets {
		code := secret.Code(auth.TOTPStep(now))
		wantEqual(t, mustTake(t, f, &a, code, now), auth.FactorTOTP, "a code of authenticator %d counts as", i)
		if got := mustTake(t, f, &a, code, now); got != "" {
			t.Errorf("a code of authenticator %d counts again", i)
		}
	}
	_, err := a.MFA.RemoveAuthenticator("other")
	wantKind(t, "remove an unknown one", err, fault.NotFound)
	for i := range secrets[1:] {
		all := a.MFA.Authenticators()
		if len(all) != len(secrets)-i {
			t.Fatalf("there are %d, want %d", len(all), len(secrets)-i)
		}
		if name, err := a.MFA.RemoveAuthenticator(all[0].ID()); err != nil || name != all[0].Name {
			t.Fatal(name, err)
		}
		now = now.Add(time.Minute)
		if got := mustTake(t, f, &a, secrets[i].Code(auth.TOTPStep(now)), now); got != "" {
			t.Errorf("a code of the removed authenticator %d counts", i)
		}
		wantEqual(t, mustTake(t, f, &a, secrets[i+1].Code(auth.TOTPStep(now)), now), auth.FactorTOTP,
			"without %d a code of %d counts as", i, i+1)
	}
	_, err = a.MFA.RemoveAuthenticator(a.MFA.Authenticators()[0].ID())
	wantKind(t, "remove the only one", err, fault.Conflict)
	if got := mustTake(t, f, &a, "aaaaa-bbbbb", now); got != auth.FactorRecovery {
		t.Errorf("a recovery code counts as %q after the first authenticator is removed", got)
	}
}

// TestAnotherAuthenticatorWaits checks that a further authenticator counts only after its own
// session has activated it in time, and not after the second factor was turned off.
func TestAnotherAuthenticatorWaits(t *testing.T) {
	t.Parallel()
	f, now := newSecondFactor(t, "r"), time.Unix(1_800_000_000, 0)
	next := auth.Authenticator{Name: "app", Enrolment: auth.Enrolment{At: now, SessionID: "s"}}
	secret := auth.TOTPSecret{7}
	code := secret.Code(auth.TOTPStep(now))
	var none auth.Account
	wantKind(t, "without a first one", f.EnrolAnother(&none, next, secret, auth.Nonce{7}), fault.Conflict)
	wantKind(t, "codes without one", f.RenewRecovery(&none, nil), fault.Conflict)

	a := newEnrolledAccount(t, f, now.Add(-time.Hour))
	for n := range byte(2) { // the second takes the place of the first
		must.Succeed(t, f.EnrolAnother(&a, next, secret, auth.Nonce{n + 2}))
	}
	if len(a.MFA.More) != 1 || len(a.MFA.Authenticators()) != 1 || mustTake(t, f, &a, code, now) != "" {
		t.Errorf("before the activation: %d, %d", len(a.MFA.More), len(a.MFA.Authenticators()))
	}
	_, err := f.ActivateAnother(&a, "000000", "s", now)
	wantKind(t, "a wrong code", err, fault.Unauthenticated)
	_, err = f.ActivateAnother(&a, code, "other", now)
	wantKind(t, "another session", err, fault.Conflict)
	_, err = f.ActivateAnother(&a, code, "s", now.Add(auth.EnrolmentTTL))
	wantKind(t, "too late", err, fault.Conflict)
	if _, err = f.ActivateAnother(&a, code, "s", now); err != nil {
		t.Fatal(err)
	}

	// A version that does not know of further ones turns the first one off, and on again later.
	more := a.MFA.More
	a = newEnrolledAccount(t, f, now.Add(time.Minute))
	a.MFA.More = more
	later := now.Add(time.Hour)
	if got := mustTake(t, f, &a, secret.Code(auth.TOTPStep(later)), later); got != "" || len(a.MFA.Authenticators()) != 1 {
		t.Errorf("a code of an authenticator that was turned off counts as %q", got)
	}
}

func TestRenewRecovery(t *testing.T) {
	t.Parallel()
	f, now := newSecondFactor(t, "r"), time.Unix(1_800_000_000, 0)
	a := newEnrolledAccount(t, f, now, "aaaaa-aaaaa", "bbbbb-bbbbb")
	must.Succeed(t, f.RenewRecovery(&a, []auth.OTP{"ccccc-ccccc"}))
	for code, want := range map[auth.OTP]auth.Factor{
		"aaaaa-aaaaa": "", "bbbbb-bbbbb": "", "ccccc-ccccc": auth.FactorRecovery,
	} {
		wantEqual(t, mustTake(t, f, &a, code, now), want, "%q counts as", string(code))
	}
}
