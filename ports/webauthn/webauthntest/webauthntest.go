// Package webauthntest has the contract tests of package webauthn. The responses come from the
// caller, because contract suites have no keys.
package webauthntest

import (
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/webauthn"
)

// Case is a registration and a signature of one key, for the same expectation.
type Case struct {
	Expected           webauthn.Expected
	Registered, Signed []byte
	Credential         auth.CredentialID
	Count              uint32 // of the signature
	// RefusedRegistrations and RefusedSignatures are named after what is wrong with them.
	RefusedRegistrations, RefusedSignatures map[string][]byte
}

// Run runs the suite.
func Run(t *testing.T, v webauthn.Verifier, cases map[string]Case) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			made, err := v.Register(c.Expected, c.Registered)
			if err != nil || made.ID != c.Credential || len(made.PublicKey) == 0 {
				t.Fatalf("Register returned %+v, %v", made, err)
			}
			named, err := v.Identify(c.Signed)
			if err != nil || named.Credential != c.Credential || string(named.Handle) != string(c.Expected.Handle[:]) {
				t.Errorf("Identify returned %+v, %v", named, err)
			}
			signed, err := v.Verify(c.Expected, made, c.Signed)
			if err != nil || signed.SignCount != c.Count || signed.ID != made.ID {
				t.Errorf("Verify returned %+v, %v", signed, err)
			}
			for what, response := range c.RefusedRegistrations {
				if _, err := v.Register(c.Expected, response); !fault.Is(err, fault.Unauthenticated) {
					t.Errorf("registration, %s: %v", what, err)
				}
			}
			for what, response := range c.RefusedSignatures {
				if _, err := v.Verify(c.Expected, made, response); !fault.Is(err, fault.Unauthenticated) {
					t.Errorf("signature, %s: %v", what, err)
				}
			}
		})
	}
}
