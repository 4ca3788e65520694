// Package oidcissuer runs a real OpenID Connect issuer within a test: its discovery document and
// its keys over HTTP or HTTPS. It signs any token that the test wants, and can be made to fail.
package oidcissuer

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/tollgate-dev/tollgate/test/testcert"
)

// The paths of the documents of an issuer.
const (
	DiscoveryPath = "/.well-known/openid-configuration"
	KeysPath      = "/keys"
)

// Issuer is an issuer on this machine.
type Issuer struct {
	URL    string // as in the claim iss
	CAFile string // the authority of its certificate; empty without TLS

	ended chan struct{} // closed when the test ends

	mu      sync.Mutex
	keys    []Key
	tokens  int
	fetches map[string]int          // by path
	instead map[string]http.Handler // by path
}

// Start runs an issuer over HTTP until the test ends. It has one key, for ES256.
func Start(t testing.TB) *Issuer {
	t.Helper()
	i := newIssuer(t)
	server := httptest.NewServer(i)
	i.endWith(t, server)
	return i
}

// StartTLS is like Start, over HTTPS with a certificate of its own authority.
func StartTLS(t testing.TB) *Issuer {
	t.Helper()
	i := newIssuer(t)
	authority := testcert.NewAuthority(t)
	server := httptest.NewUnstartedServer(i)
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{authority.Issue(t, "127.0.0.1").Pair()}, MinVersion: tls.VersionTLS12,
	}
	server.StartTLS()
	i.CAFile = authority.CertFile
	i.endWith(t, server)
	return i
}

func newIssuer(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{ended: make(chan struct{}), fetches: map[string]int{}, instead: map[string]http.Handler{}}
	i.RotateKeys(t)
	return i
}

func (i *Issuer) endWith(t testing.TB, server *httptest.Server) {
	i.URL = server.URL
	t.Cleanup(func() {
		close(i.ended) // ends responses that hang
		server.Close()
	})
}

// RotateKeys replaces the keys of the issuer by a new one for ES256 with another ID. It returns the
// previous ones.
func (i *Issuer) RotateKeys(t testing.TB) (previous []Key) {
	t.Helper()
	fresh := []Key{NewKey(t, jose.ES256)}
	i.mu.Lock()
	defer i.mu.Unlock()
	previous, i.keys = i.keys, fresh
	return previous
}

// AddKey makes a new key for an algorithm, publishes it with the others and returns it.
func (i *Issuer) AddKey(t testing.TB, algorithm jose.SignatureAlgorithm) Key {
	t.Helper()
	fresh := NewKey(t, algorithm)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(slices.Clone(i.keys), fresh)
	return fresh
}

// Key returns the key that Sign uses.
func (i *Issuer) Key() Key { return i.currentKeys()[0] }

func (i *Issuer) currentKeys() []Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys
}

// NewClaims returns the claims of a token that is valid for five minutes from now. Each has its own
// jti.
func (i *Issuer) NewClaims(audience string, now time.Time) map[string]any {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tokens++
	return map[string]any{
		"iss": i.URL, "sub": "repo:example/server:ref:refs/heads/main", "aud": audience,
		"jti": fmt.Sprintf("token-%d", i.tokens),
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	}
}

// Sign returns a token with exactly these claims, signed by the key of the issuer for
// ES256.
func (i *Issuer) Sign(t testing.TB, claims map[string]any) string {
	t.Helper()
	return i.Key().Sign(t, claims)
}

// Fetches returns how often a document was fetched, by its path.
func (i *Issuer) Fetches(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches[path]
}

// Respond makes a handler respond to the requests for a path. A nil handler restores the document.
func (i *Issuer) Respond(path string, with http.Handler) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.instead[path] = with
}

// Fail makes the issuer respond to every request with a status and without a document.
func (i *Issuer) Fail(status int) {
	i.respondAll(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", status)
	}))
}

// Disconnect makes the issuer close every connection without a response.
func (i *Issuer) Disconnect() {
	i.respondAll(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
}

// Hang makes the issuer accept requests and not respond to them.
func (i *Issuer) Hang() { i.respondAll(i.Hung()) }

// Hung returns a handler that does not respond.
func (i *Issuer) Hung() http.Handler { return http.HandlerFunc(i.neverRespond) }

func (i *Issuer) neverRespond(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-i.ended:
	}
}

// Recover ends what Respond, Fail, Disconnect and Hang have begun.
func (i *Issuer) Recover() { i.respondAll(nil) }

func (i *Issuer) respondAll(with http.Handler) {
	i.Respond(DiscoveryPath, with)
	i.Respond(KeysPath, with)
}

// Discovery returns the discovery document, for tests that change it.
func (i *Issuer) Discovery() map[string]any {
	return map[string]any{
		"issuer": i.URL, "jwks_uri": i.URL + KeysPath,
		"id_token_signing_alg_values_supported": []string{"RS256", "PS256", "ES256", "ES384", "EdDSA", "HS256", "none"},
	}
}

// ServeHTTP responds with a document of the issuer.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.fetches[r.URL.Path]++
	instead := i.instead[r.URL.Path]
	i.mu.Unlock()
	switch {
	case instead != nil:
		instead.ServeHTTP(w, r)
	case r.URL.Path == DiscoveryPath:
		Document(i.Discovery()).ServeHTTP(w, r)
	case r.URL.Path == KeysPath:
		Document(PublicKeys(i.currentKeys()...)).ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// Document returns a handler that responds with a value as JSON.
func Document(value any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value) // the client may be gone
	})
}
