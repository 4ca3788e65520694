package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// MaxAuthenticators is the number of authenticators that a person may have (contract A-80).
const MaxAuthenticators = 5

// AuthenticatorID names one of a person's authenticators.
type AuthenticatorID string

// Authenticator is one of several authenticators of a person.
type Authenticator struct {
	Name      string
	Secret    SealedSecret
	Active    bool
	LastStep  int64
	Enrolment Enrolment
}

// ID returns the id of the authenticator. It is a hash of the sealed secret, which reveals nothing
// about it.
func (a Authenticator) ID() AuthenticatorID {
	sum := sha256.Sum256(a.Secret)
	return AuthenticatorID(hex.EncodeToString(sum[:16]))
}

// Authenticators returns the active authenticators, the oldest first.
func (m *MFA) Authenticators() []Authenticator {
	if !m.Active {
		return nil
	}
	all := []Authenticator{{m.Name, m.Secret, m.Active, m.LastStep, m.Enrolment}}
	for i := range m.More {
		if m.accepts(&m.More[i]) {
			all = append(all, m.More[i])
		}
	}
	return all
}

// accepts reports whether codes of a further authenticator are accepted. One that is older than the
// first one is of a second factor that was turned off by a version that does not know of further
// ones.
func (m *MFA) accepts(a *Authenticator) bool {
	return m.Active && a.Active && !a.Enrolment.At.Before(m.Enrolment.At)
}

// EnrolAnother gives an account a further authenticator that is not active yet, in place of another
// one that is not active. It returns fault.Conflict if no authenticator is active or if the account
// has MaxAuthenticators of them. A nonce must be used only once.
func (f SecondFactor) EnrolAnother(a *Account, next Authenticator, secret TOTPSecret, nonce Nonce) error {
	switch n := len(a.MFA.Authenticators()); {
	case n == 0:
		return errNoAuthenticator()
	case n >= MaxAuthenticators:
		return fault.Newf(fault.Conflict, "there are already %d authenticators: remove one first", MaxAuthenticators)
	}
	sealed, err := f.sealing.Seal(nonce, secret[:], string(a.ID))
	if err != nil {
		return err
	}
	next.Secret, next.Active, next.LastStep = sealed, false, 0
	a.MFA.More = append(slices.DeleteFunc(a.MFA.More, func(m Authenticator) bool { return !a.MFA.accepts(&m) }), next)
	return nil
}

// ActivateAnother makes the authenticator of EnrolAnother active if the code is right, with the
// rules of Activate, and returns its name.
func (f SecondFactor) ActivateAnother(a *Account, code OTP, by SessionID, now time.Time) (string, error) {
	for i := range a.MFA.More {
		m := &a.MFA.More[i]
		if m.Active || !m.Enrolment.isOpen(now) || m.Enrolment.SessionID != by {
			continue
		}
		right, err := f.match(a.ID, m.Secret, &m.LastStep, canonicalCode(code), now)
		switch {
		case err != nil:
			return "", err
		case !right:
			return "", WrongCode()
		}
		m.Active = true
		return m.Name, nil
	}
	return "", errNothingToActivate()
}

// RemoveAuthenticator removes one of several active authenticators and returns its name. It returns
// fault.NotFound if there is none with the id, and fault.Conflict if it is the only one.
func (m *MFA) RemoveAuthenticator(id AuthenticatorID) (string, error) {
	all := m.Authenticators()
	i := slices.IndexFunc(all, func(a Authenticator) bool { return a.ID() == id })
	switch {
	case i < 0:
		return "", fault.New(fault.NotFound, "there is no such authenticator")
	case len(all) == 1:
		return "", fault.New(fault.Conflict, "this is the only authenticator: turn it off instead")
	}
	name := all[i].Name
	all = slices.Delete(all, i, i+1)
	m.Name, m.Secret, m.LastStep, m.Enrolment = all[0].Name, all[0].Secret, all[0].LastStep, all[0].Enrolment
	m.More = all[1:]
	return name, nil
}

// RenewRecovery gives an account other recovery codes. The old ones are not accepted any more. It
// returns fault.Conflict if no authenticator is active.
func (f SecondFactor) RenewRecovery(a *Account, codes []OTP) error {
	if !a.MFA.Active {
		return errNoAuthenticator()
	}
	f.setRecovery(a, codes)
	return nil
}

func errNoAuthenticator() error { return fault.New(fault.Conflict, "no authenticator is active") }

func errNothingToActivate() error {
	return fault.New(fault.Conflict, "there is no authenticator to activate: enrol one first, and activate it "+
		"in the same session within 10 minutes")
}
