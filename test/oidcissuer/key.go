package oidcissuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// Key is a key that signs tokens.
type Key struct {
	ID        string // empty for tokens that do not name their key
	Algorithm jose.SignatureAlgorithm
	Private   crypto.Signer
}

// NewKey returns a new key for ES256, ES384, EdDSA or an algorithm of RSA, with its own ID.
func NewKey(t testing.TB, algorithm jose.SignatureAlgorithm) Key {
	t.Helper()
	var private crypto.Signer
	var err error
	switch algorithm {
	case jose.ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.ES384:
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case jose.EdDSA:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Key{ID: rand.Text(), Algorithm: algorithm, Private: private}
}

// Public returns the public key as the issuer publishes it.
func (k Key) Public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.Private.Public(), KeyID: k.ID, Algorithm: string(k.Algorithm), Use: "sig"}
}

// Sign returns a token with exactly these claims.
func (k Key) Sign(t testing.TB, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return k.SignPayload(t, payload)
}

// SignPayload returns a token with a payload of any form.
func (k Key) SignPayload(t testing.TB, payload []byte) string {
	t.Helper()
	return SignWith(t, jose.SigningKey{
		Algorithm: k.Algorithm, Key: jose.JSONWebKey{Key: k.Private, KeyID: k.ID},
	}, payload)
}

// SignTyped returns a token with exactly these claims and a type in its header; empty without one.
func (k Key) SignTyped(t testing.TB, kind string, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	options := &jose.SignerOptions{}
	if kind != "" {
		options = options.WithType(jose.ContentType(kind))
	}
	return sign(t, jose.SigningKey{Algorithm: k.Algorithm, Key: jose.JSONWebKey{Key: k.Private, KeyID: k.ID}}, options, payload)
}

// SignWith returns a token with a payload of any form, signed by a key of any form.
func SignWith(t testing.TB, key jose.SigningKey, payload []byte) string {
	t.Helper()
	return sign(t, key, (&jose.SignerOptions{}).WithType("JWT"), payload)
}

func sign(t testing.TB, key jose.SigningKey, options *jose.SignerOptions, payload []byte) string {
	t.Helper()
	signer, err := jose.NewSigner(key, options)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// PublicKeys returns the key set that an issuer publishes.
func PublicKeys(keys ...Key) jose.JSONWebKeySet {
	var set jose.JSONWebKeySet
	for _, k := range keys {
		set.Keys = append(set.Keys, k.Public())
	}
	return set
}
