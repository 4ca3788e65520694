package auth

import (
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

const (
	// RecoveryCodes is the number of recovery codes of an authenticator (contract A-19).
	RecoveryCodes = 10
	// recoveryLength is the length of one without its hyphen: 50 bits.
	recoveryLength = 10
)

// Factor is the second factor that was accepted at the second step. The zero value is no factor.
type Factor string

// The factors besides a password.
const (
	FactorTOTP     Factor = "totp"
	FactorRecovery Factor = "recovery_code"
	// FactorLink is a link that only the person has, like a code that was sent by e-mail.
	FactorLink Factor = "link"
	// FactorCompany is a second factor that the provider of a company sign-in has checked.
	FactorCompany Factor = "company"
	// FactorPasskey is a passkey, which is password and second factor in one.
	FactorPasskey Factor = "passkey"
	// FactorBrowser is the approval in a session at FULL_TRUST whose person has just given a password
	// or a code (contract A-79).
	FactorBrowser Factor = "browser"
)

// StepsUp reports whether a sign-in with the factor counts as one that is followed by a step-up
// (contract A-18). A recovery code does not: it is for a lost authenticator.
func (f Factor) StepsUp() bool { return f != "" && f != FactorRecovery }

// IsCode reports whether the factor is a code that the person has entered.
func (f Factor) IsCode() bool { return f == FactorTOTP || f == FactorRecovery }

// RecoveryHash is the keyed hash of a recovery code. Only hashes are stored.
type RecoveryHash [32]byte

// NewRecoveryCode returns a recovery code, for example k3c5a-x2p7q.
func NewRecoveryCode(random [7]byte) OTP {
	text := strings.ToLower(base32.StdEncoding.EncodeToString(random[:]))
	return OTP(text[:recoveryLength/2] + "-" + text[recoveryLength/2:recoveryLength])
}

// SecondFactor manages authenticators: it seals their secrets, hashes recovery codes and checks
// codes. It changes accounts in memory only; the caller must call it within Update of the store,
// which prevents concurrent changes. It is safe for concurrent use.
type SecondFactor struct{ sealing, recovery Key }

// NewSecondFactor returns a SecondFactor with keys derived from the root secret. It returns the
// error of RootSecret.Derive.
func NewSecondFactor(root RootSecret) (SecondFactor, error) {
	sealing, err := root.Derive("authenticator secrets")
	if err != nil {
		return SecondFactor{}, err
	}
	recovery, err := root.Derive("recovery codes")
	return SecondFactor{sealing, recovery}, err
}

// Enrol gives an account an authenticator that is not active yet. It replaces another one that is
// not active, and returns fault.Conflict if one is active. A nonce must be used only once.
func (f SecondFactor) Enrol(a *Account, secret TOTPSecret, nonce Nonce, by Enrolment) error {
	if a.MFA.Active {
		return fault.New(fault.Conflict, "an authenticator is active: disable it first")
	}
	sealed, err := f.sealing.Seal(nonce, secret[:], string(a.ID))
	if err != nil {
		return err
	}
	a.MFA = MFA{Secret: sealed, Enrolment: by}
	return nil
}

// Activate makes an authenticator active if the code is right, and sets the recovery codes of the
// account. by is the session that activates it, empty for an operator. It must be the session that
// enrolled it, at most EnrolmentTTL ago. Activate returns WrongCode for a wrong code, and
// fault.Conflict if there is no authenticator that the session may activate.
func (f SecondFactor) Activate(a *Account, code OTP, recovery []OTP, by SessionID, now time.Time) error {
	switch {
	case a.MFA.Active:
		return fault.New(fault.Conflict, "the authenticator is already active")
	case !a.MFA.Pending(now), a.MFA.Enrolment.SessionID != by:
		return errNothingToActivate()
	}
	right, err := f.matchTOTP(a, canonicalCode(code), now)
	if err != nil {
		return err
	}
	if !right {
		return WrongCode()
	}
	a.MFA.Active = true
	f.setRecovery(a, recovery)
	return nil
}

func (f SecondFactor) setRecovery(a *Account, codes []OTP) {
	a.MFA.Recovery = nil
	for _, c := range codes {
		a.MFA.Recovery = append(a.MFA.Recovery, f.hashRecoveryCode(a.ID, canonicalCode(c)))
	}
}

// WrongCode returns the error for a wrong code of an authenticator.
func WrongCode() *fault.Error {
	return fault.New(fault.Unauthenticated, "the code is wrong or was used before").WithCode(CodeInvalidMFA)
}

// Take uses up a code of an active authenticator, or one of its recovery codes; either is valid
// once (contract A-19). It returns which of the two the code was. For a wrong code it returns
// nothing and changes nothing.
func (f SecondFactor) Take(a *Account, code OTP, now time.Time) (Factor, error) {
	if !a.MFA.Active {
		return "", nil
	}
	code = canonicalCode(code)
	if len(code) == recoveryLength {
		if f.takeRecovery(a, code) {
			return FactorRecovery, nil
		}
		return "", nil
	}
	right, err := f.matchTOTP(a, code, now)
	if !right || err != nil {
		return "", err
	}
	return FactorTOTP, nil
}

// TakeTOTP is like Take, for codes of the authenticator only.
func (f SecondFactor) TakeTOTP(a *Account, code OTP, now time.Time) (bool, error) {
	if !a.MFA.Active {
		return false, nil
	}
	return f.matchTOTP(a, canonicalCode(code), now)
}

// matchTOTP reports whether a code is one of the account's authenticators.
func (f SecondFactor) matchTOTP(a *Account, code OTP, now time.Time) (bool, error) {
	right, err := f.match(a.ID, a.MFA.Secret, &a.MFA.LastStep, code, now)
	for i := 0; i < len(a.MFA.More) && !right && err == nil; i++ {
		if m := &a.MFA.More[i]; a.MFA.accepts(m) {
			right, err = f.match(a.ID, m.Secret, &m.LastStep, code, now)
		}
	}
	return right, err
}

// match reports whether a code is one of an authenticator, and uses it up.
func (f SecondFactor) match(id UserID, sealed SealedSecret, last *int64, code OTP, now time.Time) (bool, error) {
	secret, err := f.openSecret(id, sealed)
	if err != nil {
		return false, err
	}
	step := secret.matchStep(code, now, *last)
	if step == 0 {
		return false, nil
	}
	*last = step
	return true, nil
}

func (f SecondFactor) openSecret(id UserID, sealed SealedSecret) (TOTPSecret, error) {
	plain, err := f.sealing.Open(sealed, string(id))
	if err != nil {
		return TOTPSecret{}, fmt.Errorf("the authenticator of account %s: %w", id, err)
	}
	var secret TOTPSecret
	if len(plain) != len(secret) {
		return TOTPSecret{}, errors.New("an authenticator's secret has another length")
	}
	copy(secret[:], plain)
	return secret, nil
}

// takeRecovery reports whether a code is a recovery code of the account, and removes it. It
// compares keyed hashes, so that its duration reveals nothing about the codes.
func (f SecondFactor) takeRecovery(a *Account, code OTP) bool {
	hash := f.hashRecoveryCode(a.ID, code)
	for i, stored := range a.MFA.Recovery {
		if stored == hash {
			rest := append([]RecoveryHash(nil), a.MFA.Recovery[:i]...)
			a.MFA.Recovery = append(rest, a.MFA.Recovery[i+1:]...)
			return true
		}
	}
	return false
}

// hashRecoveryCode returns the keyed hash of a recovery code. The same code of another person has
// another hash.
func (f SecondFactor) hashRecoveryCode(user UserID, code OTP) RecoveryHash {
	return f.recovery.Sum(string(user) + "\x00" + string(code))
}

// canonicalCode returns a code in lower case without spaces and hyphens.
func canonicalCode(code OTP) OTP {
	return OTP(strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(string(code))))
}
