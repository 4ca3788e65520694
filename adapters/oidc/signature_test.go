package oidc

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// subject is a verifier with one issuer and a clock of its own.
type subject struct {
	*Verifier
	issuer *oidcissuer.Issuer
}

func newSubject(t *testing.T) subject {
	t.Helper()
	i := oidcissuer.Start(t)
	return subject{openVerifier(t, newConfig(i), newClock()), i}
}

func (s subject) newClaims() map[string]any { return s.issuer.NewClaims(audience, s.clock.Now()) }

// newToken returns a token that the current key of the issuer has signed.
func (s subject) newToken(t *testing.T) string { return s.issuer.Sign(t, s.newClaims()) }

func (s subject) verify(t *testing.T, token string) error {
	t.Helper()
	_, err := s.Verify(t.Context(), publisher.OIDC, token)
	return err
}

func (s subject) checkAccepted(t *testing.T, what, token string) {
	t.Helper()
	if err := s.verify(t, token); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func (s subject) checkKind(t *testing.T, what, token string, kind fault.Kind, reason string) {
	t.Helper()
	if err := s.verify(t, token); !fault.Is(err, kind) || !strings.Contains(err.Error(), reason) {
		t.Errorf("%s: %v, want %v with %q", what, err, kind, reason)
	}
}

// TestOffSentences checks that the refusal names the setting that is missing.
func TestOffSentences(t *testing.T) {
	i := oidcissuer.Start(t)
	for setting, c := range map[string]Config{
		"PUBLIC_URL":   {GitHubIssuer: i.URL, Issuers: []string{i.URL}},
		"OIDC_ISSUERS": {GitHubIssuer: i.URL, PublicURL: audience},
	} {
		s := subject{openVerifier(t, c, newClock()), i}
		s.checkKind(t, setting, s.newToken(t), fault.NotFound, setting+" is not set")
	}
	if i.Fetches(oidcissuer.DiscoveryPath) != 0 {
		t.Error("a method that is off caused a request")
	}
}

func TestAlgorithms(t *testing.T) {
	s := newSubject(t)
	rsa, ed := s.issuer.AddKey(t, jose.RS256), s.issuer.AddKey(t, jose.EdDSA)
	for _, k := range []oidcissuer.Key{s.issuer.Key(), rsa, ed} {
		s.checkAccepted(t, string(k.Algorithm), k.Sign(t, s.newClaims()))
		k.ID = ""
		s.checkAccepted(t, string(k.Algorithm)+" without the ID of the key", k.Sign(t, s.newClaims()))
	}
	other := rsa
	other.Algorithm = jose.RS512
	s.checkKind(t, "an algorithm that is not that of the key", other.Sign(t, s.newClaims()),
		fault.Unauthenticated, "signature")
	payload, err := json.Marshal(s.newClaims())
	must.Succeed(t, err)
	for name, secret := range publicForms(t, rsa) {
		key := jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: secret, KeyID: rsa.ID}}
		s.checkKind(t, "HS256 with the public key as "+name, oidcissuer.SignWith(t, key, payload),
			fault.Unauthenticated, `"HS256"`)
	}
	for _, algorithm := range []string{"none", "None", "NONE", ""} {
		header, _ := json.Marshal(map[string]string{"alg": algorithm, "kid": rsa.ID})
		unsigned := base64.RawURLEncoding.EncodeToString(header) + "." +
			base64.RawURLEncoding.EncodeToString(payload) + "."
		s.checkKind(t, "unsigned as "+algorithm, unsigned, fault.Unauthenticated, "algorithm")
	}
}

// publicForms returns the texts that a careless verifier would use as the secret of HS256.
func publicForms(t *testing.T, k oidcissuer.Key) map[string][]byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.Private.Public())
	must.Succeed(t, err)
	document, err := json.Marshal(k.Public())
	must.Succeed(t, err)
	return map[string][]byte{
		"DER": der, "PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "JWK": document,
	}
}

// TestIssuerAlgorithms checks that only algorithms of the discovery document are accepted, and
// RS256 without any.
func TestIssuerAlgorithms(t *testing.T) {
	for name, c := range map[string]struct {
		listed   any
		rsa, ec  bool
		readable bool
	}{
		"both":           {[]string{"RS256", "ES256"}, true, true, true},
		"one":            {[]string{"ES256"}, false, true, true},
		"nothing":        {nil, true, false, true},
		"not asymmetric": {[]string{"HS256", "none"}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t)
			rsa := s.issuer.AddKey(t, jose.RS256)
			document := s.issuer.Discovery()
			if document["id_token_signing_alg_values_supported"] = c.listed; c.listed == nil {
				delete(document, "id_token_signing_alg_values_supported")
			}
			s.issuer.Respond(oidcissuer.DiscoveryPath, oidcissuer.Document(document))
			for key, accepted := range map[oidcissuer.Key]bool{rsa: c.rsa, s.issuer.Key(): c.ec} {
				err := s.verify(t, key.Sign(t, s.newClaims()))
				if (err == nil) != accepted || err != nil && fault.Is(err, fault.Unavailable) == c.readable {
					t.Errorf("%s: %v, want accepted: %v", key.Algorithm, err, accepted)
				}
			}
		})
	}
}

// TestEqualSignatures checks that the second signature that anybody can make from one by ECDSA does
// not make a second token.
func TestEqualSignatures(t *testing.T) {
	s := newSubject(t)
	claims := s.newClaims()
	delete(claims, "jti")
	token := s.issuer.Sign(t, claims)
	parts := strings.Split(token, ".")
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	must.Succeed(t, err)
	private, ok := s.issuer.Key().Private.(*ecdsa.PrivateKey)
	if !ok {
		t.Fatal("the key is not for ECDSA")
	}
	other := new(big.Int).Sub(private.Params().N, new(big.Int).SetBytes(signature[32:]))
	other.FillBytes(signature[32:])
	twin := parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(signature)
	first, err := s.Verify(t.Context(), publisher.OIDC, token)
	must.Succeed(t, err)
	second, err := s.Verify(t.Context(), publisher.OIDC, twin)
	if err != nil || first.ID != second.ID || twin == token {
		t.Errorf("the IDs are %s and %s (%v)", first.ID, second.ID, err)
	}
}

// TestKeySetMembers checks that keys that cannot be used neither verify a token nor hinder others.
func TestKeySetMembers(t *testing.T) {
	s := newSubject(t)
	good, encrypts := s.issuer.Key(), oidcissuer.NewKey(t, jose.ES256)
	public := encrypts.Public()
	public.Use = "enc"
	s.issuer.Respond(oidcissuer.KeysPath, oidcissuer.Document(map[string]any{"keys": []any{
		map[string]any{"kty": "OKP", "crv": "Ed448", "kid": "a", "x": "AA"}, map[string]any{"kty": "unknown"},
		"a text", nil,
		map[string]any{"kty": "oct", "kid": "c", "k": "c2VjcmV0"}, public, good.Public(),
	}}))
	s.checkAccepted(t, "the usable key", good.Sign(t, s.newClaims()))
	s.checkKind(t, "a key that encrypts", encrypts.Sign(t, s.newClaims()), fault.Unauthenticated, "known key")
}

// TestErrorsKeepTokens checks that no error contains a part of the token.
func TestErrorsKeepTokens(t *testing.T) {
	s := newSubject(t)
	claims := s.newClaims()
	claims["secret"] = "VERY-SECRET"
	token := oidcissuer.NewKey(t, jose.ES256).Sign(t, claims)
	for _, text := range []string{
		token, token[1:], strings.Replace(token, ".", "", 1), token + "=", token[:len(token)-9],
	} {
		err := s.verify(t, text)
		if err == nil || strings.Contains(err.Error(), "SECRET") ||
			strings.Contains(err.Error(), token[len(token)/2:len(token)/2+20]) {
			t.Errorf("verify: %v", err)
		}
	}
}

// FuzzParseToken checks that a token of any form either is refused or has a single text.
func FuzzParseToken(f *testing.F) {
	f.Add("e30.e30.AA")
	f.Add(`{"payload":"e30"}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseToken(text)
		p.identity()
		if _, claimsErr := p.checkClaims(audience, newClock().Now()); claimsErr != nil &&
			!fault.Is(claimsErr, fault.Unauthenticated) {
			t.Errorf("%q: %v", text, claimsErr)
		}
		if err != nil {
			if !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		parts := strings.Split(text, ".")
		for _, part := range parts {
			raw, err := base64.RawURLEncoding.DecodeString(part)
			if err != nil || base64.RawURLEncoding.EncodeToString(raw) != part {
				t.Errorf("%q is accepted, and has another text with the same bytes", text)
			}
		}
	})
}
