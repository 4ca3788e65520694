package webauthn_test

import (
	"fmt"
	"testing"

	adapter "github.com/tollgate-dev/tollgate/adapters/webauthn"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/webauthn"
	"github.com/tollgate-dev/tollgate/ports/webauthn/webauthntest"
	"github.com/tollgate-dev/tollgate/test/softkey"
)

// refusals are responses with one thing wrong each (contract K-4).
var refusals = map[string]func(*softkey.Response){
	"type":                     func(r *softkey.Response) { r.Type = "payment.get" },
	"challenge":                func(r *softkey.Response) { r.Challenge = make([]byte, 32) },
	"origin":                   func(r *softkey.Response) { r.Origin = "https://tollgate.example.org" },
	"origin with another port": func(r *softkey.Response) { r.Origin += ":8443" },
	"cross origin":             func(r *softkey.Response) { r.CrossOrigin = true },
	"relying party":            func(r *softkey.Response) { r.Party = "example.org" },
	"user not present":         func(r *softkey.Response) { r.Flags = softkey.UserVerified },
	"user not verified":        func(r *softkey.Response) { r.Flags = softkey.UserPresent },
	"backed up, not eligible": func(r *softkey.Response) {
		r.Flags = softkey.UserPresent | softkey.UserVerified | softkey.BackedUp
	},
}

func TestVerifier(t *testing.T) {
	t.Parallel()
	e := webauthn.Expected{
		Party:     webauthn.Party{ID: "example.com", Origin: "https://tollgate.example.com", Name: "Tollgate"},
		Challenge: [32]byte{1, 31: 255}, Handle: auth.PasskeyHandle{7, 63: 9},
	}
	cases := map[string]webauthntest.Case{}
	for name, algorithm := range map[string]int{"EdDSA": softkey.EdDSA, "ES256": softkey.ES256, "RS256": softkey.RS256} {
		k := softkey.New(algorithm)
		k.Handle, k.Count = e.Handle[:], 5
		right := softkey.Response{Challenge: e.Challenge[:], Party: e.Party.ID, Origin: e.Party.Origin}
		c := webauthntest.Case{
			Expected: e, Registered: k.Register(right), Signed: k.Sign(right), Credential: auth.CredentialID(k.ID), Count: 6,
			RefusedRegistrations: map[string][]byte{"not JSON": []byte("{"), "empty": []byte("{}"), "signature": k.Sign(right)},
			RefusedSignatures:    map[string][]byte{"not JSON": []byte("{"), "empty": []byte("{}"), "creation": k.Register(right)},
		}
		for what, spoil := range refusals {
			wrong := right
			spoil(&wrong)
			c.RefusedRegistrations[what], c.RefusedSignatures[what] = k.Register(wrong), k.Sign(wrong)
		}
		altered, handle, eligible := right, right, right
		altered.Alter, handle.Handle = true, []byte("another person's handle")
		eligible.Flags = softkey.UserPresent | softkey.UserVerified | softkey.BackupEligible
		c.RefusedSignatures["altered"], c.RefusedSignatures["handle"] = k.Sign(altered), k.Sign(handle)
		c.RefusedSignatures["became eligible"] = k.Sign(eligible)
		other := softkey.New(algorithm)
		c.RefusedSignatures["another credential"] = other.Sign(right)
		other.ID = k.ID
		c.RefusedSignatures["another key"] = other.Sign(right)
		for _, length := range []int{15, 1024} {
			other.ID = make([]byte, length)
			c.RefusedRegistrations[fmt.Sprintf("an id of %d bytes", length)] = other.Register(right)
			c.RefusedSignatures[fmt.Sprintf("an id of %d bytes", length)] = other.Sign(right)
		}
		cases[name] = c
	}
	webauthntest.Run(t, adapter.New(), cases)
}
