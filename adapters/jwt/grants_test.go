package jwt

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	jwt "github.com/golang-jwt/jwt/v5"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// openMixed returns an issuer with a key of each algorithm, of which one signs the tokens of grants, and its
// keys by their algorithms.
func openMixed(t *testing.T, algorithm string) (*Issuer, map[string]signingKey, Config) {
	t.Helper()
	dir, keys := t.TempDir(), map[string]signingKey{}
	for _, a := range algorithms() {
		writeKeyOf(t, dir, a+".pem", a)
		loaded, err := readKeyFile(filepath.Join(dir, a+".pem"))
		must.Succeed(t, err)
		keys[a] = loaded
	}
	c := Config{KeysDir: dir, OAuthAlg: algorithm}
	return openIssuer(t, c, newRing(), secretstest.NewClock()), keys, c
}

// grantMap returns the claims of the sample of a grant, as RFC 9068 has them.
func grantMap() jwt.MapClaims {
	c := secretstest.GrantClaims(secretstest.NewClock())
	return jwt.MapClaims{
		"iss": grantIssuer, "aud": c.Granted.Resource, "sub": string(c.UserID), "sid": string(c.SessionID), "jti": c.ID,
		"iat": float64(c.IssuedAt.Unix()), "exp": float64(c.ExpiresAt.Unix()), "client_id": string(c.Granted.Client),
		"scope": "read write:all", "acr": "LIMITED_TRUST", "auth_time": float64(c.Granted.AuthTime.Unix()),
	}
}

// TestGrantForm checks the header and the claims of a token of a grant, and that they are no more than those
// of RFC 9068.
func TestGrantForm(t *testing.T) {
	for _, algorithm := range algorithms() {
		i, keys, _ := openMixed(t, algorithm)
		token, err := i.Sign(t.Context(), secretstest.GrantClaims(secretstest.NewClock()))
		must.Succeed(t, err)
		var got [2]jwt.MapClaims
		for n, part := range strings.Split(string(token), ".")[:2] {
			text, err := base64.RawURLEncoding.DecodeString(part)
			must.Succeed(t, err)
			must.Succeed(t, json.Unmarshal(text, &got[n]))
		}
		want := jwt.MapClaims{"alg": algorithm, "typ": "at+jwt", "kid": string(keys[algorithm].id)}
		if !reflect.DeepEqual(got[0], want) || !reflect.DeepEqual(got[1], grantMap()) {
			t.Errorf("the token is %v, want %v and %v", got, want, grantMap())
		}
		session, err := i.Sign(t.Context(), secretstest.SampleClaims(secretstest.NewClock()))
		must.Succeed(t, err)
		if parsed, _, err := jwt.NewParser().ParseUnverified(string(session), jwt.MapClaims{}); err != nil ||
			parsed.Header["alg"] != "EdDSA" {
			t.Errorf("with %s, the header of a token of a session is %v, error %v", algorithm, parsed.Header, err)
		}
		parts := strings.Split(string(session), ".")
		text, err := base64.RawURLEncoding.DecodeString(parts[1])
		must.Succeed(t, err)
		if want := `{"iss":"tollgate","sub":"11111111-2222-4333-8444-555555555555","aud":["tollgate"],"exp":1795262460,` +
			`"iat":1795262400,"jti":"0b0e6d8a-5c3e-4f0c-9d1a-2b3c4d5e6f70","client_id":"tollgate",` +
			`"sid":"66666666-7777-4888-8999-aaaaaaaaaaaa"}`; string(text) != want {
			t.Errorf("the token of a session is %s, want %s", text, want)
		}
	}
}

// forge signs claims by a key, with an algorithm that need not be its own.
func forge(t *testing.T, key signingKey, method jwt.SigningMethod, by any, claims jwt.MapClaims) auth.AccessToken {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	token.Header["typ"], token.Header["kid"] = tokenType, string(key.id)
	text, err := token.SignedString(by)
	must.Succeed(t, err)
	return auth.AccessToken(text)
}

// TestRefusesForgedGrants checks that Verify refuses tokens of grants with one defect each, which are
// signed by a key of the service.
func TestRefusesForgedGrants(t *testing.T) {
	i, keys, _ := openMixed(t, authstore.ES256)
	for _, algorithm := range algorithms() {
		key, method := keys[algorithm], jwt.GetSigningMethod(algorithm)
		if _, err := i.Verify(t.Context(), forge(t, key, method, key.private, grantMap())); err != nil {
			t.Fatalf("a good token by %s: %v", algorithm, err)
		}
		for name, change := range map[string]func(c jwt.MapClaims){
			"another issuer":                 func(c jwt.MapClaims) { c["iss"] = "https://tools.example.com/" },
			"the issuer of sessions":         func(c jwt.MapClaims) { c["iss"] = "tollgate" },
			"no issuer":                      func(c jwt.MapClaims) { delete(c, "iss") },
			"two audiences":                  func(c jwt.MapClaims) { c["aud"] = []string{"https://a.example", "https://b.example"} },
			"the audience of sessions":       func(c jwt.MapClaims) { c["aud"] = "tollgate" },
			"the audience of sessions too":   func(c jwt.MapClaims) { c["aud"] = []string{"https://a.example", "tollgate"} },
			"no audience":                    func(c jwt.MapClaims) { delete(c, "aud") },
			"an empty audience":              func(c jwt.MapClaims) { c["aud"] = "" },
			"an empty list of audiences":     func(c jwt.MapClaims) { c["aud"] = []string{} },
			"no client":                      func(c jwt.MapClaims) { delete(c, "client_id") },
			"a client that is a number":      func(c jwt.MapClaims) { c["client_id"] = 7 },
			"no subject":                     func(c jwt.MapClaims) { delete(c, "sub") },
			"a subject that is no person":    func(c jwt.MapClaims) { c["sub"] = "repo:acme/tools" },
			"a session that is no UUID":      func(c jwt.MapClaims) { c["sid"] = "x" },
			"no id":                          func(c jwt.MapClaims) { delete(c, "jti") },
			"an id without family":           func(c jwt.MapClaims) { c["jti"] = "0b0e6d8a-5c3e-4f0c-9d1a-2b3c4d5e6f70" },
			"an id with a family alone":      func(c jwt.MapClaims) { c["jti"] = "0b0e6d8a-5c3e-4f0c-9d1a-2b3c4d5e6f70." },
			"an id with too few characters":  func(c jwt.MapClaims) { c["jti"] = fmt.Sprint(c["jti"])[:57] },
			"an id with too many characters": func(c jwt.MapClaims) { c["jti"] = fmt.Sprint(c["jti"], "A") },
			"a family that is no UUID":       func(c jwt.MapClaims) { c["jti"] = "x.AAAAAAAAAAAAAAAAAAAAAA" },
			"no level":                       func(c jwt.MapClaims) { delete(c, "acr") },
			"an unknown level":               func(c jwt.MapClaims) { c["acr"] = "TOTAL_TRUST" },
			"a level in lower case":          func(c jwt.MapClaims) { c["acr"] = "full_trust" },
			"no time of issue":               func(c jwt.MapClaims) { delete(c, "iat") },
			"no expiry":                      func(c jwt.MapClaims) { delete(c, "exp") },
			"a publisher":                    func(c jwt.MapClaims) { c["auth_method"] = "dns" },
			"not valid yet":                  func(c jwt.MapClaims) { c["nbf"] = c["exp"] },
		} {
			claims := grantMap()
			change(claims)
			_, err := i.Verify(t.Context(), forge(t, key, method, key.private, claims))
			secretstest.WantCode(t, algorithm+": "+name, err, auth.CodeInvalidToken)
		}
	}
}

// TestRefusesConfusedAlgorithms checks that the key decides on the algorithm, and not the token.
func TestRefusesConfusedAlgorithms(t *testing.T) {
	i, keys, _ := openMixed(t, authstore.RS256)
	clk := secretstest.NewClock()
	for name, token := range map[string]auth.AccessToken{
		"none": forge(t, keys[authstore.RS256], jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, grantMap()),
		"HS256 by the public key of RSA": forge(t, keys[authstore.RS256], jwt.SigningMethodHS256,
			publicBytes(keys[authstore.RS256]), grantMap()),
		"HS256 by the public key of Ed25519": forge(t, keys[authstore.EdDSA], jwt.SigningMethodHS256,
			publicBytes(keys[authstore.EdDSA]), grantMap()),
		"ES256 with the id of the key of RSA": forge(t, keys[authstore.RS256], jwt.SigningMethodES256,
			keys[authstore.ES256].private, grantMap()),
		"RS256 with the id of the key of P-256": forge(t, keys[authstore.ES256], jwt.SigningMethodRS256,
			keys[authstore.RS256].private, grantMap()),
		"PS256 by the key of RSA": forge(t, keys[authstore.RS256], jwt.SigningMethodPS256,
			keys[authstore.RS256].private, grantMap()),
		"RS512 by the key of RSA": forge(t, keys[authstore.RS256], jwt.SigningMethodRS512,
			keys[authstore.RS256].private, grantMap()),
	} {
		_, err := i.Verify(t.Context(), token)
		secretstest.WantCode(t, name, err, auth.CodeInvalidToken)
	}
	good := secretstest.SampleClaims(clk)
	session := jwt.MapClaims{
		"iss": "tollgate", "aud": "tollgate", "sub": string(good.UserID), "sid": string(good.SessionID), "jti": good.ID,
		"iat": good.IssuedAt.Unix(), "exp": good.ExpiresAt.Unix(),
	}
	for _, algorithm := range algorithms() {
		key := keys[algorithm]
		_, err := i.Verify(t.Context(), forge(t, key, jwt.GetSigningMethod(algorithm), key.private, session))
		if (err == nil) != (algorithm == authstore.EdDSA) {
			t.Errorf("a token of a session by %s: %v", algorithm, err)
		}
	}
}

// TestGrantsAreOff checks that without an issuer of grants their tokens are neither signed nor accepted, and
// no key of another algorithm is needed.
func TestGrantsAreOff(t *testing.T) {
	on, _, _ := openMixed(t, authstore.EdDSA)
	token, err := on.Sign(t.Context(), secretstest.GrantClaims(secretstest.NewClock()))
	must.Succeed(t, err)
	dir := on.keys.folders[0].dir
	off, end, err := Open(t.Context(), Config{Issuer: "tollgate", Audience: "tollgate", KeysDir: dir, OAuthAlg: "ES256"},
		newRing(), secretstest.NewClock(), discardLog())
	must.Succeed(t, err)
	defer end()
	_, err = off.Verify(t.Context(), token)
	secretstest.WantCode(t, "a token of a grant", err, auth.CodeInvalidToken)
	if token, err := off.Sign(t.Context(), secretstest.GrantClaims(secretstest.NewClock())); err == nil {
		t.Errorf("a token of a grant is signed: %s", token)
	}
	for name, c := range map[string]Config{
		"an unknown algorithm": {Issuer: "i", Audience: "a", DataDir: dir, OAuthAlg: "HS256"},
		"an audience for both": {Issuer: "i", Audience: grantIssuer, DataDir: dir, OAuthIssuer: grantIssuer},
	} {
		if err := c.Validate(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestMadeKeys checks that instances that start at the same time with one folder create one key of the
// algorithm, which earlier versions do not read, and that after a change of the algorithm the tokens of the
// one before are good.
func TestMadeKeys(t *testing.T) {
	dir, clk, ring := t.TempDir(), secretstest.NewClock(), newRing()
	var token auth.AccessToken
	for _, algorithm := range []string{authstore.ES256, authstore.RS256, authstore.EdDSA} {
		tokens := make([]auth.AccessToken, 4)
		var wait sync.WaitGroup
		for n := range tokens {
			wait.Go(func() {
				i := openIssuer(t, Config{DataDir: dir, OAuthAlg: algorithm}, ring, clk)
				tokens[n], _ = i.Sign(context.Background(), secretstest.GrantClaims(clk))
			})
		}
		wait.Wait()
		i := openIssuer(t, Config{DataDir: dir, OAuthAlg: algorithm}, ring, clk)
		for _, one := range append(tokens, token) {
			if one == "" {
				continue
			}
			if _, err := i.Verify(t.Context(), one); err != nil {
				t.Errorf("%s: %v", algorithm, err)
			}
		}
		token = tokens[0]
	}
	plain, err := os.ReadDir(filepath.Join(dir, "keys"))
	must.Succeed(t, err)
	other, err := os.ReadDir(filepath.Join(dir, "keys", "oauth"))
	must.Succeed(t, err)
	if len(plain) != 2 || !plain[0].IsDir() || plain[1].Name() != "signing-0001.pem" || len(other) != 2 {
		t.Errorf("the folders have %v and %v", plain, other)
	}
	list, err := openIssuer(t, Config{DataDir: dir}, ring, clk).PublicKeys(t.Context())
	if err != nil || len(list) != 3 {
		t.Errorf("the keys are %v, error %v; want 3", list, err)
	}
}

// TestRotationOfGrants checks that the last file of the algorithm signs, whatever follows it, that other
// instances know the keys, that a removed key is refused, and that a folder without one is.
func TestRotationOfGrants(t *testing.T) {
	ctx, dir, clk, ring := t.Context(), t.TempDir(), secretstest.NewClock(), newRing()
	c := Config{KeysDir: dir, OAuthAlg: authstore.ES256, Issuer: "i", Audience: "a", OAuthIssuer: grantIssuer}
	writeKey(t, dir, "2.pem")
	if _, _, err := Open(ctx, c, ring, clk, discardLog()); err == nil || !strings.Contains(err.Error(), "ES256") {
		t.Errorf("a folder without a key for ES256: %v", err)
	}
	first := writeKeyOf(t, dir, "0.pem", authstore.ES256)
	i, other := openIssuer(t, c, ring, clk), openIssuer(t, Config{DataDir: t.TempDir()}, ring, clk)
	sign := func(want authstore.KeyID) auth.AccessToken {
		t.Helper()
		token, err := i.Sign(ctx, secretstest.GrantClaims(clk))
		must.Succeed(t, err)
		if _, key := i.keys.currentSigners(); key.id != want {
			t.Errorf("the key of grants is %s, want %s", key.id, want)
		}
		for _, by := range []*Issuer{i, other} {
			if _, err := by.Verify(ctx, token); err != nil {
				t.Error(err)
			}
		}
		return token
	}
	early := sign(first)
	writeKeyOf(t, dir, "3.pem", authstore.RS256)
	must.Succeed(t, i.keys.reloadFiles(ctx))
	sign(first)
	second := writeKeyOf(t, dir, "1.pem", authstore.ES256)
	must.Succeed(t, i.keys.reloadFiles(ctx))
	clk.Advance(time.Second)
	sign(second)
	must.Succeed(t, os.Remove(filepath.Join(dir, "0.pem")))
	for _, by := range []*Issuer{i, other} {
		must.Succeed(t, by.keys.reloadFiles(ctx))
		_, err := by.Verify(ctx, early)
		secretstest.WantCode(t, "a token of a removed key", err, auth.CodeInvalidToken)
	}
	must.Succeed(t, os.Remove(filepath.Join(dir, "1.pem")))
	if err := i.keys.reloadFiles(ctx); err == nil {
		t.Error("a folder without a key for ES256 is read")
	}
	sign(second)
}

// TestRefusesWeakKeys checks that the service does not start with keys of another kind or a weak one.
func TestRefusesWeakKeys(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	must.Succeed(t, err)
	curve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must.Succeed(t, err)
	for name, key := range map[string]any{"RSA of 1,024 bits": weak, "P-384": curve} {
		dir := t.TempDir()
		writeKey(t, dir, "1.pem")
		writePrivate(t, filepath.Join(dir, "2.pem"), key)
		c := Config{KeysDir: dir, Issuer: "i", Audience: "a"}
		if _, _, err := Open(t.Context(), c, newRing(), secretstest.NewClock(), discardLog()); err == nil ||
			!strings.Contains(err.Error(), "2.pem") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAccessToMadeKeys checks that there is a warning of a key of grants that others may read.
func TestAccessToMadeKeys(t *testing.T) {
	dir := t.TempDir()
	openIssuer(t, Config{DataDir: dir, OAuthAlg: authstore.ES256}, newRing(), secretstest.NewClock())
	file := filepath.Join(dir, "keys", "oauth", "es256.pem")
	info, err := os.Stat(file)
	must.Succeed(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v", info.Mode())
	}
	must.Succeed(t, os.Chmod(file, 0o644))
	log, hook := logtest.NewNullLogger()
	_, end, err := Open(t.Context(), Config{
		DataDir: dir, OAuthAlg: authstore.ES256, Issuer: "i", Audience: "a", OAuthIssuer: grantIssuer,
	}, newRing(), secretstest.NewClock(), logrus.NewEntry(log))
	must.Succeed(t, err)
	defer end()
	if last := hook.LastEntry(); last == nil || !strings.Contains(last.Message, file) {
		t.Errorf("the last line of the log is %v", last)
	}
}

// TestKeyOutlivesGrants checks that a token of a grant is valid until it expires, also if the instance that
// signed it has stopped.
func TestKeyOutlivesGrants(t *testing.T) {
	clk, ring := secretstest.NewClock(), newRing()
	i := openIssuer(t, Config{DataDir: t.TempDir()}, ring, clk)
	clk.Advance(announceEvery - time.Second) // since the last announcement
	claims := secretstest.GrantClaims(clk)
	claims.ExpiresAt = clk.Now().Add(oauth.MaxTokenTTL)
	token, err := i.Sign(t.Context(), claims)
	must.Succeed(t, err)
	clk.Advance(oauth.MaxTokenTTL - time.Second)
	if _, err := openIssuer(t, Config{DataDir: t.TempDir()}, ring, clk).Verify(t.Context(), token); err != nil {
		t.Error(err)
	}
}

// TestGrantsCountMore checks that remembered tokens of grants take no more memory than others.
func TestGrantsCountMore(t *testing.T) {
	v, c := newVerifiedTokens(), secrets.TokenClaims{Granted: &oauth.Claims{}}
	for n := range 3 * maxVerified {
		v.putClaims(digest{byte(n), byte(n >> 8), byte(n >> 16)}, c, 0)
	}
	if count := len(v.young) + len(v.old); count > 2*maxVerified/grantSize {
		t.Errorf("%d tokens are remembered, want at most %d", count, 2*maxVerified/grantSize)
	}
}
