// Package webauthn is the port that checks what authenticators have signed (W3C Web Authentication,
// level 3, sections 7.1 and 7.2). It keeps nothing and decides nothing about people: package
// core/auth/passkeys does.
//
// [github.com/tollgate-dev/tollgate/ports/webauthn/webauthntest] has the contract tests.
package webauthn

import "github.com/tollgate-dev/tollgate/core/auth"

// Party is the service as authenticators know it.
type Party struct {
	ID     string // a host
	Origin string // of the pages, without a slash at the end
	Name   string // shown to people
}

// Expected is what the response of an authenticator must be about.
type Expected struct {
	Party     Party
	Challenge [32]byte
	Handle    auth.PasskeyHandle // of the person
}

// Named is what a response says about itself. It is not verified.
type Named struct {
	Credential auth.CredentialID
	Handle     []byte // empty without one
}

// Verifier verifies responses: PublicKeyCredential in the JSON of its toJSON method. It is safe for
// concurrent use. Every error of its methods is fault.Unauthenticated, with the reason as its cause.
type Verifier interface {
	// Register returns the new credential of a response to navigator.credentials.create. The person
	// must have been present and verified, the origin must be that of the party and not in a frame of
	// another one, and the algorithm one of auth.PasskeyAlgorithms.
	Register(e Expected, response []byte) (auth.Credential, error)
	// Identify returns the credential and the person that a response to navigator.credentials.get
	// names. The id of the credential has auth.MinCredentialID to auth.MaxCredentialID bytes.
	Identify(response []byte) (Named, error)
	// Verify returns the credential with the sign count and the flags of a response that it has
	// signed, under the conditions of Register. BackupEligible must be as stored. It does not compare
	// sign counts. A handle in the response must be that of the person.
	Verify(e Expected, stored auth.Credential, response []byte) (auth.Credential, error)
}
