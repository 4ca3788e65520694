// Package passkeyjson has the options that browsers get to call an authenticator, in the JSON of
// WebAuthn, for the API and the console.
package passkeyjson

import (
	"encoding/base64"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/ports/webauthn"
)

// Party returns the relying party of a request, or fault.Unsupported where browsers permit no
// passkeys.
func Party(c *fiber.Ctx, s *passkeys.Service) (webauthn.Party, error) {
	scheme := "http://"
	if rest.Secure(c) {
		scheme = "https://"
	}
	return s.Party(scheme + rest.Host(c))
}

// credentialDescriptor names a credential (WebAuthn, section 5.8.3).
type credentialDescriptor struct {
	Type       string   `json:"type"`
	ID         string   `json:"id"`
	Transports []string `json:"transports,omitempty"`
}

func describeCredentials(all []auth.Credential) []credentialDescriptor {
	return each.Map(all, func(c auth.Credential) credentialDescriptor {
		return credentialDescriptor{publicKey, encodeBytes([]byte(c.ID)), c.Transports}
	})
}

// The values of options (contract K-2).
const (
	publicKey = "public-key"
	required  = "required"
	timeout   = 300_000 // ms
)

func encodeBytes(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Request is PublicKeyCredentialRequestOptions (WebAuthn, section 5.5).
type Request struct {
	Challenge        string                 `json:"challenge"`
	Timeout          int                    `json:"timeout"`
	RPID             string                 `json:"rpId"`
	AllowCredentials []credentialDescriptor `json:"allowCredentials"`
	UserVerification string                 `json:"userVerification"`
}

// NewRequest returns the options of a sign-in or a step-up.
func NewRequest(o passkeys.Options) *Request {
	return &Request{
		encodeBytes(o.Challenge[:]), timeout, o.Party.ID, describeCredentials(o.Credentials), required,
	}
}

// Creation is PublicKeyCredentialCreationOptions (WebAuthn, section 5.4).
type Creation struct {
	RP                     entity                 `json:"rp"`
	User                   entity                 `json:"user"`
	Challenge              string                 `json:"challenge"`
	PubKeyCredParams       []keyParameter         `json:"pubKeyCredParams"`
	Timeout                int                    `json:"timeout"`
	ExcludeCredentials     []credentialDescriptor `json:"excludeCredentials"`
	AuthenticatorSelection authenticatorSelection `json:"authenticatorSelection"`
	Attestation            string                 `json:"attestation"`
}

type entity struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
}

type keyParameter struct {
	Type string `json:"type"`
	Alg  int    `json:"alg"`
}

type authenticatorSelection struct {
	ResidentKey        string `json:"residentKey"`
	RequireResidentKey bool   `json:"requireResidentKey"`
	UserVerification   string `json:"userVerification"`
}

// NewCreation returns the options of a registration.
func NewCreation(o passkeys.Options) *Creation {
	options := &Creation{
		RP:        entity{ID: o.Party.ID, Name: o.Party.Name},
		User:      entity{encodeBytes(o.Handle[:]), string(o.Person.Email), o.Person.Name},
		Challenge: encodeBytes(o.Challenge[:]), Timeout: timeout,
		ExcludeCredentials:     describeCredentials(o.Credentials),
		AuthenticatorSelection: authenticatorSelection{required, true, required},
		Attestation:            "none",
	}
	for _, algorithm := range auth.PasskeyAlgorithms() {
		options.PubKeyCredParams = append(options.PubKeyCredParams, keyParameter{publicKey, algorithm})
	}
	return options
}

// Send sends the options of a ceremony or a challenge to a page of the console.
func Send(c *fiber.Ctx, id string, options any) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(map[string]any{"id": id, "publicKey": options})
}
