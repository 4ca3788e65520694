package authorizing

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// assertionType is the type of an assertion by which a client proves who it is (RFC 7523, section 2.2).
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// maxClientID is the greatest length of the id of a client that counts against a limit of its own.
const maxClientID = 2048

func errClient() error {
	return oauth.Refuse(oauth.CodeInvalidClient, "the client is unknown, or has not proved who it is")
}

// claim is how a request proves its client: by one method.
type claim struct {
	id     oauth.ClientID
	method oauth.Method
	secret string // or the assertion
}

// readClaim returns how a request proves its client (contract T-15). The error has CodeInvalidRequest, or
// CodeInvalidClient for one that names no client.
func readClaim(r *TokenRequest) (c claim, err error) {
	if err := oauth.Once(r.Form); err != nil {
		return c, err
	}
	named, assertion := r.Form.Get(oauth.ParameterClient), r.Form.Get("client_assertion")
	c = claim{oauth.ClientID(named), oauth.MethodNone, ""}
	ways := 0
	if r.Basic != nil {
		c = claim{oauth.ClientID(r.Basic.ID), oauth.MethodSecretBasic, r.Basic.Secret}
		ways++
	}
	if secret := r.Form.Get("client_secret"); secret != "" {
		c.method, c.secret = oauth.MethodSecretInForm, secret
		ways++
	}
	if kind := r.Form.Get("client_assertion_type"); assertion != "" || kind != "" {
		if kind != assertionType {
			return c, oauth.Refuse(oauth.CodeInvalidRequest, "client_assertion_type must be %s", assertionType)
		}
		c = claim{oauth.ClientID(oauth.SubjectOf(assertion)), oauth.MethodPrivateKey, assertion}
		ways++
	}
	switch {
	case ways > 1:
		return c, oauth.Refuse(oauth.CodeInvalidRequest, "a client proves in one way who it is")
	case c.id == "" || len(c.id) > maxClientID || named != "" && named != string(c.id):
		return c, errClient()
	}
	return c, nil
}

// authenticate returns the client of a request at one of the endpoints. The error has CodeInvalidRequest,
// CodeInvalidClient, which is the same for an unknown client and one that has not proved who it is, or is
// fault.Exhausted or fault.Unavailable.
func (s *Service) authenticate(ctx context.Context, r *TokenRequest) (client oauth.Client, err error) {
	c, err := readClaim(r)
	if err != nil {
		return client, err
	}
	sum := sha256.Sum256([]byte(c.id))
	if err := s.count(ctx, throttle.OAuthToken, hex.EncodeToString(sum[:])+" ", r.From); err != nil {
		return client, err
	}
	client, err = s.findClient(ctx, c.id, r.From)
	if f, ok := fault.As(err); ok && f.Code == oauth.CodeDocumentAway {
		return client, fault.Wrap(fault.Unavailable, "the document of the client cannot be read now: "+f.Message, err)
	}
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
		client, err = oauth.Client{Method: c.method}, nil // compared all the same, so that it takes as long
	}
	if err != nil {
		return client, err
	}
	proved, err := s.proves(ctx, &client, c)
	if err == nil && !proved {
		err = errClient()
	}
	return client, err
}

// proves reports whether a claim proves its client.
func (s *Service) proves(ctx context.Context, client *oauth.Client, c claim) (bool, error) {
	known := client.ID == c.id && client.Method == c.method
	switch c.method {
	case oauth.MethodNone:
		return known, nil
	case oauth.MethodSecretBasic, oauth.MethodSecretInForm:
		given := sha256.Sum256([]byte(c.secret))
		same := subtle.ConstantTimeCompare(given[:], client.SecretHash[:]) == 1
		return known && same && client.SecretHash != auth.TokenHash{}, nil
	case oauth.MethodPrivateKey:
		if known {
			return true, s.checkAssertion(ctx, client, c)
		}
	}
	return false, nil
}

// checkAssertion returns the error of authenticate unless an assertion of a client is its own, and was not
// used before.
func (s *Service) checkAssertion(ctx context.Context, client *oauth.Client, c claim) error {
	payload, err := s.ports.Documents.Verify(ctx, client, c.secret)
	if fault.Is(err, fault.Unauthenticated) {
		return errClient()
	}
	if err != nil {
		return err
	}
	now := s.ports.Clock.Now()
	use, err := oauth.CheckClientAssertion(payload, client.ID, []string{s.config.Issuer, s.config.Issuer + oauth.TokenPath}, now)
	if err != nil {
		return err
	}
	first, err := s.ports.Used.Claim(ctx, "oauth client "+string(client.ID)+" "+use.ID, max(use.Until.Sub(now), time.Second))
	if err == nil && !first {
		err = errClient()
	}
	return err
}
