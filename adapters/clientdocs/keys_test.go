package clientdocs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

func newKey(t *testing.T) oidcissuer.Key { return oidcissuer.NewKey(t, jose.ES256) }

// setOf returns a key set as JSON.
func setOf(t *testing.T, keys ...oidcissuer.Key) []byte {
	t.Helper()
	text, err := json.Marshal(oidcissuer.PublicKeys(keys...))
	must.Succeed(t, err)
	return text
}

func claims() map[string]any { return map[string]any{"sub": "client"} }

// TestVerify checks tokens by keys that the client has, or that are elsewhere.
func TestVerify(t *testing.T) {
	s := startSite(t)
	for _, algorithm := range []jose.SignatureAlgorithm{
		jose.ES256, jose.ES384, jose.EdDSA, jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	} {
		key := oidcissuer.NewKey(t, algorithm)
		s.handle("/keys", serve(setOf(t, newKey(t), key), "Content-Type", "application/jwk-set+json"))
		for name, c := range map[string]*oauth.Client{
			"its own": {JWKS: string(setOf(t, key))}, "elsewhere": {JWKSURI: s.url("client.example.com", "/keys")},
		} {
			payload, err := s.reader(loopback).Verify(t.Context(), c, key.Sign(t, claims()))
			if err != nil || string(payload) != `{"sub":"client"}` {
				t.Errorf("%s, keys %s: %s, %v", algorithm, name, payload, err)
			}
		}
	}
}

// TestRefusedTokens checks tokens that a client has not signed, or not in an accepted way.
func TestRefusedTokens(t *testing.T) {
	s := startSite(t)
	r := s.reader(loopback)
	key, stranger := newKey(t), newKey(t)
	stolen := stranger
	stolen.ID = key.ID
	secret := []byte(strings.Repeat("k", 32))
	symmetric, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: secret, KeyID: "1"}}})
	must.Succeed(t, err)
	hmac := oidcissuer.SignWith(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: secret, KeyID: "1"}}, []byte(`{}`))
	good := key.Sign(t, claims())
	parts := strings.Split(good, ".")
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	s.handle("/keys", serve(setOf(t, key)))
	c := &oauth.Client{JWKS: string(setOf(t, key))}
	for name, one := range map[string]struct {
		client *oauth.Client
		token  string
	}{
		"a key of a stranger":               {c, stranger.Sign(t, claims())},
		"the id of the key by a stranger":   {c, stolen.Sign(t, claims())},
		"a stranger, keys elsewhere":        {&oauth.Client{JWKSURI: s.url("client.example.com", "/keys")}, stranger.Sign(t, claims())},
		"the id by a stranger, elsewhere":   {&oauth.Client{JWKSURI: s.url("client.example.com", "/keys")}, stolen.Sign(t, claims())},
		"a symmetric key":                   {&oauth.Client{JWKS: string(symmetric)}, hmac},
		"none":                              {c, encode(`{"alg":"none"}`) + "." + parts[1] + "."},
		"None":                              {c, encode(`{"alg":"None"}`) + "." + parts[1] + ".AA"},
		"HS256 by what is public":           {c, oidcissuer.SignWith(t, jose.SigningKey{Algorithm: jose.HS256, Key: setOf(t, key)}, []byte(`{}`))},
		"another payload":                   {c, parts[0] + "." + encode(`{"sub":"other"}`) + "." + parts[2]},
		"a header that names an extension":  {c, encode(`{"alg":"ES256","crit":["exp"],"exp":1}`) + "." + parts[1] + "." + parts[2]},
		"a signature of another algorithm":  {c, encode(`{"alg":"RS256","kid":"`+key.ID+`"}`) + "." + parts[1] + "." + parts[2]},
		"longer than 16 KiB":                {c, key.Sign(t, map[string]any{"x": strings.Repeat("x", 16<<10)})},
		"no token":                          {c, ""},
		"two parts":                         {c, parts[0] + "." + parts[1]},
		"a client without keys":             {&oauth.Client{}, good},
		"a client whose keys are no keys":   {&oauth.Client{JWKS: `{"keys":[{"kty":"EC"}]}`}, good},
		"a client whose keys are malformed": {&oauth.Client{JWKS: `x`}, good},
	} {
		if payload, err := r.Verify(t.Context(), one.client, one.token); !fault.Is(err, fault.Unauthenticated) || payload != nil {
			t.Errorf("%s: %s, %v", name, payload, err)
		}
	}
}

// TestTokensThatNeedNoKeys checks that a token that no key can make good causes no request.
func TestTokensThatNeedNoKeys(t *testing.T) {
	s := startSite(t)
	c := &oauth.Client{JWKSURI: s.url("client.example.com", "/keys")}
	for _, token := range []string{
		oidcissuer.SignWith(t, jose.SigningKey{Algorithm: jose.HS256, Key: make([]byte, 32)}, []byte(`{}`)), "eyJhbGciOiJub25lIn0.e30.", "x",
	} {
		_, err := s.reader(loopback).Verify(t.Context(), c, token)
		wantRefused(t, token, err, fault.Unauthenticated, "token")
	}
	if n := s.requests("client.example.com/keys"); n != 0 {
		t.Errorf("the keys were read %d times", n)
	}
}

// TestChangedKeys checks that an unknown key is looked for once in 30 seconds, also after a failure, and
// that a removed one is refused when the copy has expired.
func TestChangedKeys(t *testing.T) {
	s := startSite(t)
	r := s.reader(loopback)
	c := &oauth.Client{JWKSURI: s.url("client.example.com", "/keys")}
	old, next := newKey(t), newKey(t)
	verify := func(key oidcissuer.Key, kind fault.Kind, requests int) {
		t.Helper()
		_, err := r.Verify(t.Context(), c, key.Sign(t, claims()))
		if (err == nil) != (kind == 0) || err != nil && !fault.Is(err, kind) {
			t.Errorf("verify: %v, want %v", err, kind)
		}
		if n := s.requests("client.example.com/keys"); n != requests {
			t.Errorf("the keys were read %d times, want %d", n, requests)
		}
	}
	s.handle("/keys", serve(setOf(t, old), "Cache-Control", "max-age=3600"))
	verify(old, 0, 1)
	s.handle("/keys", nil)
	verify(next, fault.Unauthenticated, 1) // they were just read
	s.clock.Advance(renewEvery)
	verify(next, fault.Unavailable, 2)
	verify(next, fault.Unauthenticated, 2)
	verify(old, 0, 2)
	s.handle("/keys", serve(setOf(t, next), "Cache-Control", "max-age=3600"))
	s.clock.Advance(renewEvery - time.Second)
	verify(next, fault.Unauthenticated, 2)
	s.clock.Advance(time.Second)
	stolen := next
	stolen.ID = old.ID
	verify(stolen, fault.Unauthenticated, 2) // its id is known
	verify(next, 0, 3)
	verify(old, fault.Unauthenticated, 3)
	s.clock.Advance(time.Hour)
	verify(next, 0, 4)
}

// TestManyUnknownKeys checks that tokens by unknown keys at the same time cause one reading.
func TestManyUnknownKeys(t *testing.T) {
	s := startSite(t)
	r := s.reader(loopback)
	c := &oauth.Client{JWKSURI: s.url("client.example.com", "/keys")}
	old, next := newKey(t), newKey(t)
	s.handle("/keys", serve(setOf(t, old)))
	_, err := r.Verify(t.Context(), c, old.Sign(t, claims()))
	must.Succeed(t, err)
	s.handle("/keys", serve(setOf(t, old, next)))
	s.clock.Advance(renewEvery)
	token := next.Sign(t, claims())
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			if _, err := r.Verify(t.Context(), c, token); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if n := s.requests("client.example.com/keys"); n != 2 {
		t.Errorf("the keys were read %d times", n)
	}
}

// TestUnreadableKeys checks that keys that cannot be read are reported so, and not as a wrong token.
func TestUnreadableKeys(t *testing.T) {
	s := startSite(t)
	key := newKey(t)
	for name, handler := range map[string]http.HandlerFunc{
		"not found": nil, "HTML": serve([]byte("<html>"), "Content-Type", "text/html"), "no set": serve([]byte("{}")),
		"more than 64 KiB": serve([]byte(`{"keys":[],"x":"` + strings.Repeat("x", 64<<10) + `"}`)),
	} {
		s.handle("/keys", handler)
		_, err := s.reader(loopback).Verify(t.Context(), &oauth.Client{JWKSURI: s.url("client.example.com", "/keys")}, key.Sign(t, claims()))
		wantRefused(t, name, err, fault.Unavailable, "keys of the client")
	}
	s.handle("/keys", serve([]byte(`{"x":"`+strings.Repeat("x", 60<<10)+`",`+string(setOf(t, key))[1:])))
	c := &oauth.Client{JWKSURI: s.url("client.example.com", "/keys")}
	_, err := s.reader(loopback).Verify(t.Context(), c, key.Sign(t, claims()))
	must.Succeed(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.reader(loopback).Verify(ctx, c, key.Sign(t, claims()))
	wantRefused(t, "a caller that has gone", err, fault.Unavailable, "keys of the client")
}
