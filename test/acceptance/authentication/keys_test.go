package authentication

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// writeKey adds a signing key to a folder atomically.
func writeKey(t *testing.T, dir, name string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must.Succeed(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must.Succeed(t, err)
	draft := filepath.Join(dir, "."+name)
	fixture.WriteFile(t, draft, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	must.Succeed(t, os.Rename(draft, filepath.Join(dir, name)))
}

// readKeySet returns the key set of an instance.
func readKeySet(t *testing.T, s *fixture.Service) jose.JSONWebKeySet {
	t.Helper()
	var set jose.JSONWebKeySet
	apiclient.Call(t, "GET", s.API+"/.well-known/jwks.json", nil).WantStatus(t, http.StatusOK).Decode(t, &set)
	for _, key := range set.Keys {
		if !key.Valid() || !key.IsPublic() || key.KeyID == "" || key.Use != "sig" ||
			key.Algorithm != string(jose.EdDSA) {
			t.Errorf("the key set has %+v", key)
		}
	}
	return set
}

// readKeyID verifies an access token with the key set alone, as a gateway does, and returns the id
// of the signing key.
func readKeyID(t *testing.T, s *fixture.Service, token string) (kid string) {
	t.Helper()
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.EdDSA})
	must.Succeed(t, err)
	var claims jwt.Claims
	var more struct {
		SID string `json:"sid"`
	}
	must.Succeed(t, parsed.Claims(readKeySet(t, s), &claims, &more))
	if err := claims.Validate(jwt.Expected{
		Issuer: "tollgate", AnyAudience: jwt.Audience{"tollgate"}, Time: time.Now(),
	}); err != nil {
		t.Error(err)
	}
	id, user := fixture.ReadSession(t, s, &fixture.Person{AccessToken: token})
	header := parsed.Headers[0]
	if claims.Subject != user || more.SID != id || claims.ID == "" ||
		claims.Expiry.Time().Sub(claims.IssuedAt.Time()) != 15*time.Minute || header.ExtraHeaders["typ"] != "at+jwt" {
		t.Errorf("the token says %+v, %+v, %+v", header, claims, more)
	}
	return header.KeyID
}

// TestKeyRotation rotates signing keys while requests run. No request fails; old tokens are valid
// until their key is removed, and are refused by every instance after that.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		dir := filepath.Join(e.Dir, "keys")
		must.Succeed(t, os.MkdirAll(dir, 0o700))
		writeKey(t, dir, "2026-01.pem")
		e.Environ = append(e.Environ, "SIGNING_KEYS_DIR="+dir)
		on := startPair(t, e)
		early, late := e.NewPerson(t, "ada@example.com"), e.NewPerson(t, "eve@example.com")
		early.Login(t, on[0])
		late.Login(t, on[0])
		first := readKeyID(t, on[0], early.AccessToken)
		accept := func() {
			t.Helper()
			for _, s := range on {
				apiclient.Call(t, "GET", s.API+"/auth/session", nil, early.Bearer()...).WantStatus(t, http.StatusOK)
			}
		}

		writeKey(t, dir, "2026-02.pem")
		for _, s := range on {
			await.Until(t, "a token of the new key", func() bool {
				accept()
				refreshTokens(t, late, s)
				return readKeyID(t, on[0], late.AccessToken) != first
			})
			if set := readKeySet(t, s); len(set.Keys) != 2 {
				t.Errorf("the key set is %+v", set)
			}
		}
		for _, s := range on {
			readKeyID(t, s, early.AccessToken)
			readKeyID(t, s, late.AccessToken)
		}

		must.Succeed(t, os.Remove(filepath.Join(dir, "2026-01.pem")))
		for _, s := range on {
			awaitEnded(t, s, early)
			apiclient.Call(t, "GET", s.API+"/auth/session", nil, late.Bearer()...).WantStatus(t, http.StatusOK)
			if set := readKeySet(t, s); len(set.Keys) != 1 || set.Keys[0].KeyID == first {
				t.Errorf("the key set is %+v", set)
			}
		}
		again := e.Start(t) // which knows the removed key only from its database
		apiclient.WantAuthError(t,
			apiclient.Call(t, "GET", again.API+"/auth/session", nil, early.Bearer()...).WantStatus(t,
				http.StatusUnauthorized), "invalid_token")
		refreshTokens(t, early, again) // the session still exists
		apiclient.Call(t, "GET", again.API+"/auth/session", nil, early.Bearer()...).WantStatus(t, http.StatusOK)
	})
}

// refreshTokens refreshes the person's tokens.
func refreshTokens(t *testing.T, p *fixture.Person, s *fixture.Service) {
	t.Helper()
	var next struct{ AccessToken, RefreshToken string }
	apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{"refreshToken": p.RefreshToken}).WantStatus(t,
		http.StatusOK).Decode(t, &next)
	p.AccessToken, p.RefreshToken = next.AccessToken, next.RefreshToken
}
