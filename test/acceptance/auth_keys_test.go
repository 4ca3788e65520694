package acceptance

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// writeKey adds a signing key to a folder, whole from the moment it is there.
func writeKey(t *testing.T, dir, name string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	draft := filepath.Join(dir, "."+name)
	write(t, draft, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	if err := os.Rename(draft, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// published returns the key set of an instance, as somebody else reads it.
func published(t *testing.T, s *service) jose.JSONWebKeySet {
	t.Helper()
	var set jose.JSONWebKeySet
	call(t, "GET", s.api+"/.well-known/jwks.json", nil).want(t, http.StatusOK).decode(t, &set)
	for _, key := range set.Keys {
		if !key.Valid() || !key.IsPublic() || key.KeyID == "" || key.Use != "sig" || key.Algorithm != string(jose.EdDSA) {
			t.Errorf("the key set has %+v", key)
		}
	}
	return set
}

// read verifies an access token by the key set alone, as a gateway does, and
// returns the id of the key that signed it.
func read(t *testing.T, s *service, token string) (kid string) {
	t.Helper()
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		t.Fatal(err)
	}
	var claims jwt.Claims
	var more struct {
		SID string `json:"sid"`
	}
	if err := parsed.Claims(published(t, s), &claims, &more); err != nil {
		t.Fatal(err)
	}
	if err := claims.Validate(jwt.Expected{Issuer: "tollgate", AnyAudience: jwt.Audience{"tollgate"}, Time: time.Now()}); err != nil {
		t.Error(err)
	}
	id, user := sessionOf(t, s, &person{accessToken: token})
	header := parsed.Headers[0]
	if claims.Subject != user || more.SID != id || claims.ID == "" || claims.Expiry.Time().Sub(claims.IssuedAt.Time()) != 15*time.Minute || header.ExtraHeaders["typ"] != "at+jwt" {
		t.Errorf("the token says %+v, %+v, %+v", header, claims, more)
	}
	return header.KeyID
}

// TestKeyRotation turns signing keys over while requests run: none fails, old
// tokens are good until their key is taken away, and then nowhere.
func TestKeyRotation(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		dir := filepath.Join(e.dir, "keys")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		writeKey(t, dir, "2026-01.pem")
		e.environ = append(e.environ, "SIGNING_KEYS_DIR="+dir)
		on := e.instances(t)
		early, late := e.newPerson(t, "ada@example.com"), e.newPerson(t, "eve@example.com")
		early.login(t, on[0])
		late.login(t, on[0])
		first := read(t, on[0], early.accessToken)
		stop := hammer(t, on, early)

		writeKey(t, dir, "2026-02.pem")
		for _, s := range on {
			await(t, "a token of the new key", func() bool {
				late.refresh(t, s)
				return read(t, on[0], late.accessToken) != first
			})
			if set := published(t, s); len(set.Keys) != 2 {
				t.Errorf("the key set is %+v", set)
			}
		}
		for _, s := range on {
			read(t, s, early.accessToken)
			read(t, s, late.accessToken)
		}
		stop()

		if err := os.Remove(filepath.Join(dir, "2026-01.pem")); err != nil {
			t.Fatal(err)
		}
		for _, s := range on {
			awaitEnded(t, s, early)
			call(t, "GET", s.api+"/auth/session", nil, late.bearer()...).want(t, http.StatusOK)
			if set := published(t, s); len(set.Keys) != 1 || set.Keys[0].KeyID == first {
				t.Errorf("the key set is %+v", set)
			}
		}
		again := e.start(t) // which knows of the key that is gone by its records alone
		wantCode(t, call(t, "GET", again.api+"/auth/session", nil, early.bearer()...).want(t, http.StatusUnauthorized), "invalid_token")
		early.refresh(t, again) // the session lives on
		call(t, "GET", again.api+"/auth/session", nil, early.bearer()...).want(t, http.StatusOK)
	})
}

// refresh turns the person's tokens over.
func (p *person) refresh(t *testing.T, s *service) {
	t.Helper()
	var next struct{ AccessToken, RefreshToken string }
	call(t, "POST", s.api+"/auth/refresh", map[string]string{"refreshToken": p.refreshToken}).want(t, http.StatusOK).decode(t, &next)
	p.accessToken, p.refreshToken = next.AccessToken, next.RefreshToken
}

// hammer asks all instances with a person's token until it is told to stop,
// and wants every answer to be good.
func hammer(t *testing.T, on []*service, p *person) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	bearer := slices.Clone(p.bearer())
	var group sync.WaitGroup
	for _, s := range on {
		group.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					if n == 0 {
						t.Error("nothing was asked")
					}
					return
				case <-time.After(5 * time.Millisecond): // the machine has other work to do
				}
				a, err := try("GET", s.api+"/auth/session", nil, bearer...)
				if err != nil || a.status != http.StatusOK || !json.Valid(a.body) {
					t.Errorf("a request while keys turn over: %d %s, %v", a.status, a.body, err)
				}
			}
		})
	}
	return func() { close(done); group.Wait() }
}
