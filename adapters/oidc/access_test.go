package oidc

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/tollgate-dev/tollgate/adapters/internal/signed"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/ports/identity/identitytest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// verifyAccess reads and verifies an access token.
func verifyAccess(t *testing.T, s *Providers, c identity.Client, token string) error {
	t.Helper()
	if _, err := s.ReadAccess(token); err != nil {
		return err
	}
	return s.VerifyAccess(t.Context(), c.Provider, token)
}

// TestAccessTokens verifies access tokens of several types, and refuses what the provider has not signed
// in one of the accepted ways.
func TestAccessTokens(t *testing.T) {
	p := oidcissuer.StartProvider(t)
	s, _, c := openProviders(p)
	claims := map[string]any{"iss": p.URL, "sub": "u1"}
	for kind, reason := range map[string]fault.Code{
		"at+jwt": "", "application/at+jwt": "", "AT+JWT": "", "JWT": "", "logout+jwt": "type", "dpop+jwt": "type", "id_token+jwt": "type",
		"application/jwt": "",
	} {
		err := verifyAccess(t, s, c, p.Key().SignTyped(t, kind, claims))
		if f, _ := fault.As(err); (err == nil) != (reason == "") || err != nil && f.Code != reason {
			t.Errorf("the type %s: %v, want the reason %q", kind, err, reason)
		}
	}
	good := p.Sign(t, claims)
	must.Succeed(t, verifyAccess(t, s, c, good))
	parts := strings.Split(good, ".")
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	stranger := oidcissuer.NewKey(t, jose.RS256)
	for name, token := range map[string]string{
		"alg none":             encode(`{"alg":"none"}`) + "." + parts[1] + ".",
		"alg None":             encode(`{"alg":"None"}`) + "." + parts[1] + ".AA",
		"a key of a stranger":  stranger.Sign(t, claims),
		"HS256 by a known key": oidcissuer.SignWith(t, jose.SigningKey{Algorithm: jose.HS256, Key: []byte(strings.Repeat("k", 32))}, []byte(`{"sub":"u1"}`)),
		"another payload":      parts[0] + "." + encode(`{"sub":"u2"}`) + "." + parts[2],
		"no signature":         parts[0] + "." + parts[1] + ".",
		"two parts":            parts[0] + "." + parts[1],
		"five parts":           good + ".x.y",
		"a line end":           good[:len(good)-1] + "\n" + good[len(good)-1:],
		"padding":              good + "=",
		"longer than 16 KiB":   p.Sign(t, map[string]any{"x": strings.Repeat("x", signed.MaxToken)}),
		"no JSON":              parts[0] + "." + encode("x") + "." + parts[2],
		"a critical header":    encode(`{"alg":"RS256","crit":["x"],"x":1}`) + "." + parts[1] + "." + parts[2],
		"nothing":              "",
	} {
		if err := verifyAccess(t, s, c, token); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: error %v, want fault.Unauthenticated", name, err)
		}
	}
}

// TestAlgorithmsOfAccessTokens checks that the keys of the set decide which algorithms sign access tokens,
// of those that the service accepts, whatever the issuer announces for ID tokens.
func TestAlgorithmsOfAccessTokens(t *testing.T) {
	p := oidcissuer.StartProvider(t)
	claims := map[string]any{"iss": p.URL, "sub": "u1"}
	document := p.Discovery()
	document["id_token_signing_alg_values_supported"] = []string{"RS256"}
	document["authorization_endpoint"], document["token_endpoint"] = p.URL+oidcissuer.AuthorizePath, p.URL+oidcissuer.TokenPath
	p.Respond(oidcissuer.DiscoveryPath, oidcissuer.Document(document))
	for algorithm, good := range map[jose.SignatureAlgorithm]bool{
		jose.RS256: true, jose.PS256: true, jose.ES256: true, jose.ES384: true, jose.EdDSA: true,
		jose.RS384: false, jose.RS512: false, jose.PS384: false, jose.PS512: false,
	} {
		key := p.AddKey(t, algorithm)
		s, _, c := openProviders(p)
		if err := verifyAccess(t, s, c, key.Sign(t, claims)); (err == nil) != good {
			t.Errorf("%s: %v", algorithm, err)
		}
		if _, err := s.VerifyLogout(t.Context(), c.Provider, key.Sign(t, claims)); (err == nil) != (algorithm == jose.RS256) {
			t.Errorf("a logout token by %s: %v", algorithm, err)
		}
	}
}

// TestKeysOfAccessTokens lets the key set be away, slow and lying: a token by a known key is good all the
// while, one by a new key is good once the key set is back, and nothing else is.
func TestKeysOfAccessTokens(t *testing.T) {
	p := oidcissuer.StartProvider(t)
	claims := map[string]any{"iss": p.URL, "sub": "u1"}
	stranger := oidcissuer.NewKey(t, jose.RS256)
	lies := map[string]func(){
		"away": func() { p.Fail(503) }, "slow": p.Hang, "gone": p.Disconnect,
		"lying": func() {
			p.Respond(oidcissuer.KeysPath, oidcissuer.Document(map[string]any{"keys": []any{}}))
		},
		"another issuer": func() {
			document := p.Discovery()
			document["issuer"] = "https://elsewhere.example"
			p.Respond(oidcissuer.DiscoveryPath, oidcissuer.Document(document))
		},
	}
	for name, lie := range lies {
		s, clk, c := openProviders(p)
		old := p.Sign(t, claims)
		if err := verifyAccess(t, s, c, old); err != nil {
			t.Fatal(name, err)
		}
		p.RotateKeys(t)
		lie()
		if err := verifyAccess(t, s, c, old); err != nil && name != "lying" {
			t.Errorf("%s: a token by a known key: %v", name, err)
		}
		began := time.Now()
		if err := verifyAccess(t, s, c, p.Sign(t, claims)); err == nil {
			t.Errorf("%s: a token by an unknown key is accepted", name)
		}
		if took := time.Since(began); took > 20*s.timeout { // the machine may be busy
			t.Errorf("%s: the error took %v", name, took)
		}
		if err := verifyAccess(t, s, c, stranger.Sign(t, claims)); err == nil {
			t.Errorf("%s: a token of a stranger is accepted", name)
		}
		fresh, _, _ := openProviders(p)
		if err := verifyAccess(t, fresh, c, old); err == nil || name != "lying" && !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: before the first reading: %v", name, err)
		}
		p.Recover()
		p.Respond(oidcissuer.KeysPath, nil)
		p.Respond(oidcissuer.DiscoveryPath, nil)
		await.Until(t, name+": the keys are back", func() bool {
			clk.Advance(time.Minute) // readings because of unknown keys have pauses
			return verifyAccess(t, s, c, p.Sign(t, claims)) == nil
		})
		if err := verifyAccess(t, s, c, stranger.Sign(t, claims)); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: afterwards a token of a stranger: %v", name, err)
		}
	}
}

func TestAssertions(t *testing.T) {
	identitytest.RunAssertions(t, func(t *testing.T) identitytest.AssertionSubject {
		p := oidcissuer.StartProvider(t)
		s, _, c := openProviders(p)
		return identitytest.AssertionSubject{
			Assertions: NewAssertions(s), Provider: c.Provider, Sign: p.Key().SignTyped,
			Stranger: oidcissuer.NewKey(t, jose.RS256).SignTyped, Fail: func() { p.Fail(503) },
		}
	})
}
