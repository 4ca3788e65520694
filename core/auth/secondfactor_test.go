package auth_test

import (
	"bytes"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// rfcSecret is the secret of the vectors of RFC 6238, appendix B.
var rfcSecret = auth.TOTPSecret([]byte("12345678901234567890"))

func newSecondFactor(t rapid.TB, root string) auth.SecondFactor {
	t.Helper()
	f, err := auth.NewSecondFactor(auth.RootSecret(strings.Repeat(root, 32)))
	must.Succeed(t, err)
	return f
}

// newEnrolledAccount returns an account whose authenticator was activated at a time.
func newEnrolledAccount(t rapid.TB, f auth.SecondFactor, at time.Time, recovery ...auth.OTP) auth.Account {
	t.Helper()
	a := auth.Account{ID: "11111111-2222-4333-8444-555555555555"}
	must.Succeed(t, f.Enrol(&a, rfcSecret, auth.Nonce{1}, auth.Enrolment{At: at}))
	must.Succeed(t, f.Activate(&a, rfcSecret.Code(auth.TOTPStep(at)), recovery, "", at))
	return a
}

func mustTake(t rapid.TB, f auth.SecondFactor, a *auth.Account, code auth.OTP, at time.Time) auth.Factor {
	t.Helper()
	factor, err := f.Take(a, code, at)
	must.Succeed(t, err)
	return factor
}

// TestTOTPVectors has the vectors of RFC 6238, appendix B, SHA-1; the RFC shows eight digits, of
// which apps show the last six.
func TestTOTPVectors(t *testing.T) {
	for seconds, want := range map[int64]string{
		59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924",
		2000000000: "69279037", 20000000000: "65353130",
	} {
		if got := rfcSecret.Code(auth.TOTPStep(time.Unix(seconds, 0))); string(got) != want[2:] {
			t.Errorf("at %d the code is %q, want %s", seconds, string(got), want[2:])
		}
	}
}

// TestHOTPVectors has the vectors of RFC 4226, appendix D, on which RFC 6238 rests.
func TestHOTPVectors(t *testing.T) {
	for step, want := range []string{
		"755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489",
	} {
		if got := rfcSecret.Code(int64(step)); string(got) != want {
			t.Errorf("code %d is %q, want %s", step, string(got), want)
		}
	}
}

func TestTOTPURI(t *testing.T) {
	uri := rfcSecret.URI("Tool & Gate", "a+b@example.com")
	const want = "otpauth://totp/Tool%20%26%20Gate:a%2Bb%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" +
		"&issuer=Tool%20%26%20Gate&algorithm=SHA1&digits=6&period=30"
	wantEqual(t, uri, want, "URI")
	if u, err := url.Parse(uri); err != nil || u.Path != "/Tool & Gate:a+b@example.com" ||
		u.Query().Get("issuer") != "Tool & Gate" {
		t.Errorf("URI reads as %+v, %v", u, err)
	}
}

// TestWindow checks that codes of one step before and after now are accepted, and no others.
func TestWindow(t *testing.T) {
	f, now := newSecondFactor(t, "r"), time.Unix(1_800_000_015, 0)
	for offset := int64(-3); offset <= 3; offset++ {
		a := newEnrolledAccount(t, f, now.Add(-time.Hour))
		code := rfcSecret.Code(auth.TOTPStep(now) + offset)
		want := auth.Factor("")
		if offset >= -1 && offset <= 1 {
			want = auth.FactorTOTP
		}
		wantEqual(t, mustTake(t, f, &a, code, now), want, "the code of step %+d counts as", offset)
	}
}

func TestCodesAsPeopleTypeThem(t *testing.T) {
	f, now := newSecondFactor(t, "r"), time.Unix(1_800_000_000, 0)
	code := string(rfcSecret.Code(auth.TOTPStep(now)))
	for typed, want := range map[string]auth.Factor{
		code[:3] + " " + code[3:]: auth.FactorTOTP, " " + code: auth.FactorTOTP, "AAAAA BBBBB": auth.FactorRecovery,
		"aaaaabbbbb": auth.FactorRecovery, "aaaaa-bbbbb": auth.FactorRecovery,
		"": "", code[1:]: "", code + "0": "", "aaaaa-bbbbc": "", strings.Repeat("x", 10_000): "", "ééééé": "",
	} {
		a := newEnrolledAccount(t, f, now.Add(-time.Hour), "aaaaa-bbbbb")
		wantEqual(t, mustTake(t, f, &a, auth.OTP(typed), now), want, "%q counts as", typed)
	}
}

func TestActivation(t *testing.T) {
	f, now := newSecondFactor(t, "r"), time.Unix(1_800_000_000, 0)
	right := rfcSecret.Code(auth.TOTPStep(now))
	a := auth.Account{ID: "u"}
	wantKind := func(what string, err error, kind fault.Kind) {
		t.Helper()
		if !fault.Is(err, kind) {
			t.Errorf("%s: %v, want %v", what, err, kind)
		}
	}
	wantKind("activate nothing", f.Activate(&a, right, nil, "", now), fault.Conflict)
	must.Succeed(t, f.Enrol(&a, rfcSecret, auth.Nonce{1}, auth.Enrolment{At: now}))
	wantEqual(t, mustTake(t, f, &a, right, now), "", "a code of an authenticator that is not active counts as")
	wantKind("a wrong code", f.Activate(&a, "000000", nil, "", now), fault.Unauthenticated)
	if a.MFA.Active {
		t.Error("a wrong code activates")
	}
	must.Succeed(t, f.Activate(&a, right, []auth.OTP{"aaaaa-bbbbb"}, "", now))
	wantKind("activate again", f.Activate(&a, right, nil, "", now), fault.Conflict)
	wantKind("enrol again", f.Enrol(&a, rfcSecret, auth.Nonce{2}, auth.Enrolment{At: now}), fault.Conflict)
	wantEqual(t, mustTake(t, f, &a, right, now), "", "the code that activated counts again, as")
	if right, err := f.TakeTOTP(&a, "aaaaa-bbbbb", now); right || err != nil {
		t.Errorf("a recovery code counts as a code of the authenticator (%v)", err)
	}
}

// TestSealed checks that a secret opens only with its own key and for its own person, and is not
// visible.
func TestSealed(t *testing.T) {
	f, now := newSecondFactor(t, "r"), time.Unix(1_800_000_000, 0)
	a := newEnrolledAccount(t, f, now, "aaaaa-bbbbb")
	if bytes.Contains(a.MFA.Secret, rfcSecret[:]) || bytes.Contains(a.MFA.Recovery[0][:], []byte("aaaaa")) {
		t.Error("a secret is kept in clear")
	}
	if got := fmt.Sprintf("%v %+v %#v %s", rfcSecret, rfcSecret, rfcSecret,
		auth.NewRecoveryCode([7]byte{})); strings.Contains(got, "49") ||
		strings.Contains(got, "aaaaa") {
		t.Errorf("a secret prints as %s", got)
	}
	other := a
	other.ID = "66666666-7777-4888-8999-aaaaaaaaaaaa"
	changed := a
	changed.MFA.Secret = bytes.Clone(a.MFA.Secret)
	changed.MFA.Secret[len(changed.MFA.Secret)-1] ^= 1
	short := a
	short.MFA.Secret = short.MFA.Secret[:5]
	later := now.Add(time.Minute)
	for name, c := range map[string]struct {
		keeper  auth.SecondFactor
		account auth.Account
	}{
		"of another person": {f, other}, "changed": {f, changed}, "cut short": {f, short}, "with another root": {
			newSecondFactor(t, "s"), a,
		},
	} {
		if _, err := c.keeper.Take(&c.account, rfcSecret.Code(auth.TOTPStep(later)), later); !fault.Is(err,
			fault.Internal) {
			t.Errorf("a secret %s: %v", name, err)
		}
		if c.account.ID == other.ID || name == "with another root" {
			if got := mustTake(t, c.keeper, &c.account, "aaaaa-bbbbb", later); got != "" {
				t.Errorf("a recovery code %s counts", name)
			}
		}
	}
}

// TestACodeCountsAtMostOnce checks that no code is accepted twice, and that each accepted code is
// within the window, for any order of codes while the clock advances.
func TestACodeCountsAtMostOnce(t *testing.T) {
	f := newSecondFactor(t, "r")
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(rapid.Int64Range(1_000_000_000, 1<<33).Draw(t, "start"), 0)
		var recovery []auth.OTP
		for i := range auth.RecoveryCodes {
			recovery = append(recovery, auth.NewRecoveryCode([7]byte{byte(i), 6: byte(i)}))
		}
		a := newEnrolledAccount(t, f, start, recovery...)
		now, counted := start, map[string]bool{string(rfcSecret.Code(auth.TOTPStep(start))): true}
		for range rapid.IntRange(1, 40).Draw(t, "tries") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
			step := auth.TOTPStep(now) + rapid.Int64Range(-2, 2).Draw(t, "offset")
			code, key := rfcSecret.Code(step), fmt.Sprint(step)
			if rapid.Bool().Draw(t, "recovery") {
				code = rapid.SampledFrom(recovery).Draw(t, "code")
				key = string(code)
			}
			factor := mustTake(t, f, &a, code, now)
			if factor == "" {
				continue
			}
			if counted[key] {
				t.Fatalf("%s counts again", key)
			}
			counted[key] = true
			if off := step - auth.TOTPStep(now); factor == auth.FactorTOTP && (off < -1 || off > 1) {
				t.Fatalf("a code of step %+d counts", off)
			}
		}
	})
}

// TestEnrolmentsEnd checks that an authenticator can be activated within 10 minutes by the session
// that enrolled it, or by an operator if an operator enrolled it. One of a version that did not
// record enrolments can never be activated.
func TestEnrolmentsEnd(t *testing.T) {
	f, now := newSecondFactor(t, "r"), time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		enrolment auth.Enrolment
		by        auth.SessionID
		after     time.Duration
		activated bool
	}{
		"same session":            {auth.Enrolment{At: now, SessionID: "s"}, "s", 0, true},
		"just in time":            {auth.Enrolment{At: now, SessionID: "s"}, "s", auth.EnrolmentTTL - 1, true},
		"too late":                {auth.Enrolment{At: now, SessionID: "s"}, "s", auth.EnrolmentTTL, false},
		"another session":         {auth.Enrolment{At: now, SessionID: "s"}, "t", 0, false},
		"operator":                {auth.Enrolment{At: now}, "", time.Minute, true},
		"operator, too late":      {auth.Enrolment{At: now}, "", auth.EnrolmentTTL, false},
		"session, for operator's": {auth.Enrolment{At: now}, "s", 0, false},
		"operator, for session's": {auth.Enrolment{At: now, SessionID: "s"}, "", 0, false},
		"not recorded":            {auth.Enrolment{}, "", 0, false},
		"not recorded, session":   {auth.Enrolment{}, "s", 0, false},
	} {
		a := auth.Account{ID: "11111111-2222-4333-8444-555555555555"}
		must.Succeed(t, f.Enrol(&a, rfcSecret, auth.Nonce{1}, c.enrolment))
		at := now.Add(c.after)
		err := f.Activate(&a, rfcSecret.Code(auth.TOTPStep(at)), nil, c.by, at)
		if c.activated && (err != nil || !a.MFA.Active) ||
			!c.activated && (!fault.Is(err, fault.Conflict) || a.MFA.Active) {
			t.Errorf("%s: %v, active %t, want activated %t", name, err, a.MFA.Active, c.activated)
		}
	}
}

// TestFactorsThatStepUp lists what each factor at a sign-in is worth.
func TestFactorsThatStepUp(t *testing.T) {
	t.Parallel()
	for factor, want := range map[auth.Factor]bool{
		"": false, auth.FactorRecovery: false, auth.FactorTOTP: true, auth.FactorLink: true, auth.FactorCompany: true,
		auth.FactorPasskey: true,
	} {
		if factor.StepsUp() != want {
			t.Errorf("%q steps up: %v", factor, !want)
		}
	}
}

// wantEqual checks that both are deeply equal.
func wantEqual[V any](t *testing.T, got, want V, what string, args ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf(what+": got %v, want %v", append(args, got, want)...)
	}
}
