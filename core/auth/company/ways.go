package company

import (
	"slices"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Ways are what a person has to sign in with.
type Ways struct {
	Account    auth.Account
	Identities []Identity
	Passkeys   []auth.Passkey
}

// Any reports whether one of the ways leads in: a password that is accepted, an identity whose provider
// is among all, or a passkey that is not suspended.
func (w Ways) Any(all []Provider, passwordsOff bool) bool {
	return w.Account.PasswordHash != "" && !passwordsOff && Enforcing(all, w.Account.Email) == nil ||
		slices.ContainsFunc(w.Identities, func(i Identity) bool { return i.UsableAt(all) != nil }) ||
		len(auth.CredentialsOf(w.Passkeys)) > 0
}

// UsableAt returns the provider at which an identity can be used; nil without one.
func (i *Identity) UsableAt(all []Provider) *Provider {
	for k := range all {
		if all[k].Issuer == i.Issuer {
			return &all[k]
		}
	}
	return nil
}
