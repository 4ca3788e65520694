package oidc

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// asymmetric returns the algorithms of signatures that this service accepts: those in which only
// the issuer can sign.
func asymmetric() []string {
	return []string{
		oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512,
		oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
	}
}

// keySet is what an issuer has published at one time. It does not change.
type keySet struct {
	algorithms []string // with which the issuer signs; a subset of asymmetric
	keys       []jose.JSONWebKey
}

// readKeys reads the discovery document of an issuer, and the keys at the address that it names.
func readKeys(ctx context.Context, client *http.Client, issuer string) (*keySet, error) {
	defer client.CloseIdleConnections() // the next call is in an hour
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, client), issuer)
	if err != nil {
		return nil, fmt.Errorf("read the discovery document: %w", err)
	}
	document := struct {
		KeysURL    string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}{Algorithms: []string{oidc.RS256}} // the default is the algorithm that every issuer must support
	if err := provider.Claims(&document); err != nil {
		return nil, fmt.Errorf("read the discovery document: %w", err)
	}
	if err := checkKeysURL(document.KeysURL, issuer); err != nil {
		return nil, err
	}
	found := &keySet{
		algorithms: slices.DeleteFunc(asymmetric(), func(a string) bool {
			return !slices.Contains(document.Algorithms, a)
		}),
	}
	if len(found.algorithms) == 0 {
		return nil, errors.New("the discovery document names no asymmetric signature algorithm")
	}
	text, err := fetchDocument(ctx, client, document.KeysURL)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	if found.keys, err = parseKeys(text); err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	return found, nil
}

// checkKeysURL returns an error if an issuer publishes its keys less safely than its discovery
// document.
func checkKeysURL(keysURL, issuer string) error {
	u, err := url.Parse(keysURL)
	if err != nil || u.Host == "" {
		return errors.New("the discovery document has no jwks_uri that is a URL")
	}
	base, err := url.Parse(issuer)
	if err != nil || u.Scheme != "https" && u.Scheme != base.Scheme {
		return errors.New("jwks_uri of the discovery document does not begin with https://")
	}
	return nil
}

func fetchDocument(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("send a request: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the response has status %d", response.StatusCode)
	}
	return io.ReadAll(response.Body)
}

// parseKeys returns the public keys of a key set (RFC 7517). A key that cannot be used does not
// hinder the others (section 5).
func parseKeys(text []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil {
		return nil, errors.New("the document is not a JSON Web Key Set")
	}
	var usable []jose.JSONWebKey
	for _, member := range set.Keys {
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(member); err != nil || key.Use == "enc" {
			continue
		}
		switch key.Key.(type) {
		case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
			usable = append(usable, key)
		}
	}
	return usable, nil
}

// hasKeyOf reports whether the set has the key that a token names. A token that names no key may be
// signed by a key that the set does not have.
func (k *keySet) hasKeyOf(t idToken) bool {
	return t.keyID != "" && slices.ContainsFunc(k.keys, func(key jose.JSONWebKey) bool { return key.KeyID == t.keyID })
}

// hasSigned reports whether a key of the set has signed a token.
func (k *keySet) hasSigned(ctx context.Context, t idToken) bool {
	var candidates []crypto.PublicKey
	for _, key := range k.keys {
		if (t.keyID == "" || key.KeyID == t.keyID) && (key.Algorithm == "" || key.Algorithm == t.algorithm) {
			candidates = append(candidates, key.Key)
		}
	}
	payload, err := (&oidc.StaticKeySet{PublicKeys: candidates}).VerifySignature(ctx, t.text)
	return err == nil && bytes.Equal(payload, t.payload)
}
