// Package webauthn verifies responses of authenticators with the library go-webauthn. It implements
// the port of the same name.
package webauthn

import (
	"encoding/base64"
	"fmt"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	library "github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/webauthn"
)

// Verifier implements [webauthn.Verifier].
type Verifier struct{}

// Set provides the verifier.
var Set = wire.NewSet(New, wire.Bind(new(webauthn.Verifier), new(Verifier)))

// New returns a verifier.
func New() Verifier { return Verifier{} }

// Register implements webauthn.Verifier.
func (Verifier) Register(e webauthn.Expected, response []byte) (auth.Credential, error) {
	party, session, err := prepare(e)
	if err != nil {
		return auth.Credential{}, err
	}
	for _, algorithm := range auth.PasskeyAlgorithms() {
		session.CredParams = append(session.CredParams, protocol.CredentialParameter{
			Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.COSEAlgorithmIdentifier(algorithm),
		})
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil {
		return auth.Credential{}, refused(err)
	}
	made, err := party.CreateCredential(person{handle: e.Handle[:]}, session, parsed)
	if err != nil {
		return auth.Credential{}, refused(err)
	}
	c := auth.Credential{
		ID: auth.CredentialID(made.ID), PublicKey: made.PublicKey, SignCount: made.Authenticator.SignCount,
		BackupEligible: made.Flags.BackupEligible, BackedUp: made.Flags.BackupState,
	}
	copy(c.AAGUID[:], made.Authenticator.AAGUID)
	for _, t := range made.Transport {
		c.Transports = append(c.Transports, string(t))
	}
	return c, checkLength(made.ID)
}

// Identify implements webauthn.Verifier.
func (Verifier) Identify(response []byte) (webauthn.Named, error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return webauthn.Named{}, refused(err)
	}
	return webauthn.Named{Credential: auth.CredentialID(parsed.RawID), Handle: parsed.Response.UserHandle},
		checkLength(parsed.RawID)
}

// Verify implements webauthn.Verifier.
func (Verifier) Verify(e webauthn.Expected, stored auth.Credential, response []byte) (auth.Credential, error) {
	party, session, err := prepare(e)
	if err != nil {
		return auth.Credential{}, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return auth.Credential{}, refused(err)
	}
	known := library.Credential{
		ID: []byte(stored.ID), PublicKey: stored.PublicKey,
		Flags: library.CredentialFlags{BackupEligible: stored.BackupEligible, BackupState: stored.BackedUp},
	}
	_, err = party.ValidateLogin(person{e.Handle[:], []library.Credential{known}}, session, parsed)
	if err != nil {
		return auth.Credential{}, refused(err)
	}
	data := parsed.Response.AuthenticatorData
	stored.SignCount, stored.BackedUp = data.Counter, data.Flags.HasBackupState()
	return stored, nil
}

// prepare returns the library's form of what is expected.
func prepare(e webauthn.Expected) (*library.WebAuthn, library.SessionData, error) {
	party, err := library.New(&library.Config{
		RPID: e.Party.ID, RPDisplayName: e.Party.Name, RPOrigins: []string{e.Party.Origin},
	})
	if err != nil {
		return nil, library.SessionData{}, fmt.Errorf("relying party %s: %w", e.Party.ID, err)
	}
	return party, library.SessionData{
		Challenge: base64.RawURLEncoding.EncodeToString(e.Challenge[:]), RelyingPartyID: e.Party.ID,
		UserID: e.Handle[:], UserVerification: protocol.VerificationRequired,
	}, nil
}

func checkLength(id []byte) error {
	if len(id) < auth.MinCredentialID || len(id) > auth.MaxCredentialID {
		return refused(fmt.Errorf("the id of the credential has %d bytes", len(id)))
	}
	return nil
}

func refused(cause error) error {
	return fault.Wrap(fault.Unauthenticated, "the passkey is refused", cause)
}

// person is the library's form of a person.
type person struct {
	handle      []byte
	credentials []library.Credential
}

func (p person) WebAuthnID() []byte { return p.handle }

func (person) WebAuthnName() string { return "" }

func (person) WebAuthnDisplayName() string { return "" }

func (p person) WebAuthnCredentials() []library.Credential { return p.credentials }
