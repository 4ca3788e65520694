package jwt

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	jwt "github.com/golang-jwt/jwt/v5"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// grantIssuer is the issuer of tokens of grants in these tests.
const grantIssuer = "https://tools.example.com"

// sessionKey returns the key that signs tokens of sessions.
func sessionKey(i *Issuer) signingKey {
	key, _ := i.keys.currentSigners()
	return key
}

// publicBytes returns the public key as it is in an attack by HS256.
func publicBytes(k signingKey) []byte {
	raw, ok := k.private.Public().(ed25519.PublicKey)
	if !ok {
		raw, _ = x509.MarshalPKIXPublicKey(k.private.Public()) // of a known kind
	}
	return raw
}

func discardLog() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}

func openIssuer(t *testing.T, c Config, ring authstore.KeyRing, clk *clocktest.Manual) *Issuer {
	t.Helper()
	c.Issuer, c.Audience, c.OAuthIssuer = "tollgate", "tollgate", grantIssuer
	i, cleanup, err := Open(context.Background(), c, ring, clk, discardLog())
	must.Succeed(t, err)
	t.Cleanup(cleanup)
	return i
}

func newRing() authstore.KeyRing { return fakedb.NewKeyring(fakedb.New()) }

func TestContract(t *testing.T) {
	for _, algorithm := range algorithms() {
		t.Run(algorithm, func(t *testing.T) {
			dir := t.TempDir()
			writeKey(t, dir, "1.pem")
			writeKeyOf(t, dir, "2.pem", algorithm)
			secretstest.RunTokens(t, func(t *testing.T, c *clocktest.Manual) secretstest.TokenSubject {
				i := openIssuer(t, Config{KeysDir: dir, OAuthAlg: algorithm}, newRing(), c)
				return secretstest.TokenSubject{TokenSigner: i, TokenVerifier: i, PublishedKeys: i, Audience: "tollgate"}
			})
		})
	}
}

// TestThumbprint checks the example key and thumbprint of RFC 8037, appendix A.3.
func TestThumbprint(t *testing.T) {
	x, err := base64.RawURLEncoding.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	must.Succeed(t, err)
	if got, err := thumbprint(ed25519.PublicKey(x)); got != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" {
		t.Errorf("thumbprint is %s, error %v", got, err)
	}
}

// TestTokenForm checks the header of a token and that no claim is missing.
func TestTokenForm(t *testing.T) {
	clk := secretstest.NewClock()
	i := openIssuer(t, Config{DataDir: t.TempDir()}, newRing(), clk)
	token, err := i.Sign(context.Background(), secretstest.SampleClaims(clk))
	must.Succeed(t, err)
	parts := strings.Split(string(token), ".")
	var header, claims map[string]any
	for n, into := range []*map[string]any{&header, &claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[n])
		must.Succeed(t, err)
		must.Succeed(t, json.Unmarshal(text, into))
	}
	if header["alg"] != "EdDSA" || header["typ"] != "at+jwt" || header["kid"] != string(sessionKey(i).id) {
		t.Errorf("the header of the token is %v", header)
	}
	for _, name := range []string{"iss", "aud", "sub", "iat", "exp", "jti", "sid", "client_id"} {
		if claims[name] == nil {
			t.Errorf("claim %s is missing in %v", name, claims)
		}
	}
}

// TestRefusesForgedTokens checks that Verify refuses tokens with one defect each. Where the defect
// is not the signature, the token has a valid signature by the current key.
func TestRefusesForgedTokens(t *testing.T) {
	clk := secretstest.NewClock()
	i := openIssuer(t, Config{DataDir: t.TempDir()}, newRing(), clk)
	key := sessionKey(i)
	_, otherKey, err := ed25519.GenerateKey(nil)
	must.Succeed(t, err)
	forgeries := map[string]func(*jwt.Token, *jwt.MapClaims) any{
		"signed by another key": func(*jwt.Token, *jwt.MapClaims) any { return otherKey },
		"algorithm none": func(tk *jwt.Token, _ *jwt.MapClaims) any {
			tk.Method = jwt.SigningMethodNone
			tk.Header["alg"] = "none"
			return jwt.UnsafeAllowNoneSignatureType
		},
		"algorithm HS256, signed with the public key": func(tk *jwt.Token, _ *jwt.MapClaims) any {
			tk.Method = jwt.SigningMethodHS256
			tk.Header["alg"] = "HS256"
			return publicBytes(key)
		},
	}
	for name, change := range map[string]func(header, claims map[string]any){
		"type JWT":                   func(h, _ map[string]any) { h["typ"] = "JWT" },
		"a critical extension":       func(h, _ map[string]any) { h["crit"] = []string{"exp"} },
		"no type":                    func(h, _ map[string]any) { delete(h, "typ") },
		"unknown key ID":             func(h, _ map[string]any) { h["kid"] = "x" },
		"no key ID":                  func(h, _ map[string]any) { delete(h, "kid") },
		"another issuer":             func(_, c map[string]any) { c["iss"] = "x" },
		"another audience":           func(_, c map[string]any) { c["aud"] = "x" },
		"no audience":                func(_, c map[string]any) { delete(c, "aud") },
		"no expiry":                  func(_, c map[string]any) { delete(c, "exp") },
		"no session ID":              func(_, c map[string]any) { delete(c, "sid") },
		"session ID is not a UUID":   func(_, c map[string]any) { c["sid"] = "x" },
		"no subject":                 func(_, c map[string]any) { delete(c, "sub") },
		"no token ID":                func(_, c map[string]any) { delete(c, "jti") },
		"a publisher with a session": func(_, c map[string]any) { c["auth_method"] = "dns" },
		"a publisher without subject": func(_, c map[string]any) {
			c["auth_method"] = "dns"
			delete(c, "sid")
			delete(c, "sub")
		},
		"a publisher without token ID": func(_, c map[string]any) {
			c["auth_method"] = "dns"
			delete(c, "sid")
			delete(c, "jti")
		},
		"expired and for another audience": func(_, c map[string]any) { c["exp"], c["aud"] = clk.Now().Unix()-1, "x" },
	} {
		forgeries[name] = func(tk *jwt.Token, c *jwt.MapClaims) any {
			change(tk.Header, *c)
			return key.private
		}
	}
	for name, forge := range forgeries {
		t.Run(name, func(t *testing.T) {
			good := secretstest.SampleClaims(clk)
			claims := jwt.MapClaims{
				"iss": "tollgate", "aud": "tollgate", "sub": string(good.UserID), "sid": string(good.SessionID),
				"jti": good.ID,
				"iat": good.IssuedAt.Unix(), "exp": good.ExpiresAt.Unix(),
			}
			token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
			token.Header["typ"], token.Header["kid"] = tokenType, string(key.id)
			text, err := token.SignedString(forge(token, &claims))
			must.Succeed(t, err)
			_, err = i.Verify(context.Background(), auth.AccessToken(text))
			secretstest.WantCode(t, name, err, auth.CodeInvalidToken)
		})
	}
}

// TestParallelStartsShareOneKey checks that instances that start at the same time with one folder
// create one key, in a file that only its owner can read.
func TestParallelStartsShareOneKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	ids := make([]authstore.KeyID, 8)
	var wait sync.WaitGroup
	for n := range ids {
		wait.Go(func() {
			loaded, err := keyFolder{dir, authstore.EdDSA}.load()
			if err != nil {
				t.Error(err)
				return
			}
			ids[n] = loaded[len(loaded)-1].id
		})
	}
	wait.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("the instances have different keys: %v", ids)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("the folder contains %v, error %v; want one file", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the key file is %v, error %v; want 0600", info.Mode(), err)
	}
}

// TestInstancesVerifyEachOther checks that an instance verifies and publishes the key of another
// instance, which has a folder of its own.
func TestInstancesVerifyEachOther(t *testing.T) {
	clk, shared := secretstest.NewClock(), newRing()
	a := openIssuer(t, Config{DataDir: t.TempDir()}, shared, clk)
	b := openIssuer(t, Config{DataDir: t.TempDir()}, shared, clk)
	token, err := b.Sign(context.Background(), secretstest.SampleClaims(clk))
	must.Succeed(t, err)
	if _, err := a.Verify(context.Background(), token); err != nil {
		t.Errorf("Verify of a token of another instance returns %v", err)
	}
	list, err := a.PublicKeys(context.Background())
	if err != nil || len(list) != 2 {
		t.Errorf("PublicKeys returns %d keys, error %v; want 2 keys", len(list), err)
	}
}

// TestVerifiesFirstTokensOfNewInstances checks that an instance verifies the first tokens of
// several instances that start one right after the other.
func TestVerifiesFirstTokensOfNewInstances(t *testing.T) {
	clk, shared := secretstest.NewClock(), newRing()
	old := openIssuer(t, Config{DataDir: t.TempDir()}, shared, clk)
	for range 3 {
		token, err := openIssuer(t, Config{DataDir: t.TempDir()}, shared, clk).Sign(context.Background(),
			secretstest.SampleClaims(clk))
		must.Succeed(t, err)
		if _, err := old.Verify(context.Background(), token); err != nil {
			t.Errorf("Verify of the first token of a new instance returns %v", err)
		}
	}
}

// writeKey writes a new private key of Ed25519 to a file and returns its ID.
func writeKey(t *testing.T, dir, name string) authstore.KeyID {
	t.Helper()
	return writeKeyOf(t, dir, name, authstore.EdDSA)
}

// writeKeyOf writes a new private key of an algorithm to a file and returns its ID.
func writeKeyOf(t *testing.T, dir, name, algorithm string) authstore.KeyID {
	t.Helper()
	key, _, err := createKey(algorithm)
	must.Succeed(t, err)
	writePrivate(t, filepath.Join(dir, name), key)
	loaded, err := readKeyFile(filepath.Join(dir, name))
	must.Succeed(t, err)
	return loaded.id
}

// writePrivate writes a private key to a file.
func writePrivate(t *testing.T, path string, key any) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
}

// TestRotation checks that the key in the last file by name signs, that the earlier key still
// verifies, and that tokens of a removed key are refused.
func TestRotation(t *testing.T) {
	ctx, dir, clk := context.Background(), t.TempDir(), secretstest.NewClock()
	first := writeKey(t, dir, "2025.pem")
	i := openIssuer(t, Config{KeysDir: dir}, newRing(), clk)
	early, err := i.Sign(ctx, secretstest.SampleClaims(clk))
	must.Succeed(t, err)
	second := writeKey(t, dir, "2026.pem")
	must.Succeed(t, i.keys.reloadFiles(ctx))
	if got := sessionKey(i).id; got != second || got == first {
		t.Errorf("the signing key is %s, want %s, which is the last file by name", got, second)
	}
	if _, err := i.Verify(ctx, early); err != nil {
		t.Errorf("Verify of a token of the earlier key returns %v", err)
	}
	must.Succeed(t, os.Remove(filepath.Join(dir, "2025.pem")))
	must.Succeed(t, i.keys.reloadFiles(ctx))
	_, err = i.Verify(ctx, early)
	secretstest.WantCode(t, "a token of a removed key", err, auth.CodeInvalidToken)
	if list, err := i.PublicKeys(ctx); err != nil || len(list) != 1 || list[0].ID != second {
		t.Errorf("PublicKeys returns %v, error %v; want only the second key", list, err)
	}
}

// TestRemovedKeysAreRefusedElsewhere checks that a key whose file was removed from one instance is
// refused by the other instances, which read it from the key ring, and by the same instance after a
// restart. All instances accept the key again after its file is restored.
func TestRemovedKeysAreRefusedElsewhere(t *testing.T) {
	ctx, dir, clk, shared := context.Background(), t.TempDir(), secretstest.NewClock(), newRing()
	writeKey(t, dir, "2025.pem")
	signer, other := openIssuer(t, Config{KeysDir: dir}, shared, clk),
		openIssuer(t, Config{DataDir: t.TempDir()}, shared, clk)
	token, err := signer.Sign(ctx, secretstest.SampleClaims(clk))
	must.Succeed(t, err)
	verify := func(i *Issuer, want bool) {
		t.Helper()
		if _, err := i.Verify(ctx, token); (err == nil) != want {
			t.Errorf("Verify returns error %v, want the token to be valid: %t", err, want)
		}
	}
	reload := func(all ...*Issuer) {
		t.Helper()
		for _, i := range all {
			must.Succeed(t, i.keys.reloadFiles(ctx))
		}
	}
	verify(other, true)
	writeKey(t, dir, "2026.pem")
	aside := filepath.Join(t.TempDir(), "2025.pem")
	must.Succeed(t, os.Rename(filepath.Join(dir, "2025.pem"), aside))
	reload(signer, other)
	verify(signer, false)
	verify(other, false)
	verify(openIssuer(t, Config{KeysDir: dir}, shared, clk), false)
	must.Succeed(t, os.Rename(aside, filepath.Join(dir, "2025.pem")))
	reload(signer)
	clk.Advance(lookupEvery)
	verify(signer, true)
	verify(other, true)
}

// TestBadKeyFilesKeepLoadedKeys checks that a malformed key file does not change the signing key,
// and that the error names the file and does not quote its content.
func TestBadKeyFilesKeepLoadedKeys(t *testing.T) {
	ctx, dir, clk := context.Background(), t.TempDir(), secretstest.NewClock()
	writeKey(t, dir, "1.pem")
	i := openIssuer(t, Config{KeysDir: dir}, newRing(), clk)
	before := sessionKey(i).id
	for name, text := range map[string]string{
		"the file is not PEM":            "secret words",
		"the block is not a private key": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"the key is not PKCS#8":          "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
	} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, "2.pem"), []byte(text), 0o600))
		err := i.keys.reloadFiles(ctx)
		if err == nil || !strings.Contains(err.Error(), "2.pem") || strings.Contains(err.Error(), "secret words") {
			t.Errorf("%s: error %v, want an error that names the file and does not quote it", name, err)
		}
		if got := sessionKey(i).id; got != before {
			t.Errorf("%s: the signing key changed", name)
		}
	}
}

// countingRing is a key ring that counts the calls of PublicKeys, which returns err if it is set.
type countingRing struct {
	authstore.KeyRing
	mu    sync.Mutex
	calls int
	err   error
}

func (r *countingRing) PublicKeys(ctx context.Context, since time.Time) ([]authstore.PublicKey, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if r.err != nil {
		return nil, r.err
	}
	return r.KeyRing.PublicKeys(ctx, since)
}

// TestKeysWhileRingIsUnavailable checks that PublicKeys returns the loaded keys while the key ring
// is not available.
func TestKeysWhileRingIsUnavailable(t *testing.T) {
	clk, shared := secretstest.NewClock(), newRing()
	counting := &countingRing{KeyRing: shared}
	i := openIssuer(t, Config{DataDir: t.TempDir()}, counting, clk)
	other := openIssuer(t, Config{DataDir: t.TempDir()}, shared, clk)
	before, err := i.PublicKeys(t.Context())
	if err != nil || len(before) != 2 {
		t.Fatalf("PublicKeys returns %d keys, error %v; want 2 keys", len(before), err)
	}
	if _, err := other.PublicKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	counting.mu.Lock()
	counting.err = fault.Wrap(fault.Unavailable, "not available", errors.New("refused"))
	counting.mu.Unlock()
	after, err := i.PublicKeys(t.Context())
	if err != nil || len(after) != 2 || after[0].ID != before[0].ID || after[1].ID != before[1].ID {
		t.Errorf("PublicKeys returns %v, error %v; want the same keys as before", after, err)
	}
}

// TestKeyOutlivesItsTokens checks that a token is valid until it expires, also if the instance that
// signed it has stopped.
func TestKeyOutlivesItsTokens(t *testing.T) {
	clk, shared := secretstest.NewClock(), newRing()
	const life = 3 * time.Hour
	token, err := openIssuer(t, Config{DataDir: t.TempDir(), TokenLife: life}, shared, clk).Sign(t.Context(),
		func() secrets.TokenClaims {
			c := secretstest.SampleClaims(clk)
			c.ExpiresAt = clk.Now().Add(life)
			return c
		}())
	must.Succeed(t, err)
	clk.Advance(life - time.Second)
	if _, err := openIssuer(t, Config{DataDir: t.TempDir(), TokenLife: life}, shared, clk).Verify(t.Context(),
		token); err != nil {
		t.Errorf("Verify of a token of a stopped instance returns %v", err)
	}
}

// TestUnknownKeysCauseFewLookups checks that many tokens with unknown keys cause only a few reads
// of the key ring.
func TestUnknownKeysCauseFewLookups(t *testing.T) {
	ctx, clk, counting := context.Background(), secretstest.NewClock(), &countingRing{KeyRing: newRing()}
	i := openIssuer(t, Config{DataDir: t.TempDir()}, counting, clk)
	for n := range 50 {
		_, err := i.keys.findKey(ctx, authstore.KeyID(strings.Repeat("x", n+1)))
		if !fault.Is(err, fault.NotFound) {
			t.Fatalf("error %v, want fault.NotFound", err)
		}
	}
	if counting.calls != lookupsAtOnce {
		t.Errorf("the instance read the ring %d times, want %d", counting.calls, lookupsAtOnce)
	}
	clk.Advance(lookupEvery)
	counting.err = fault.Wrap(fault.Unavailable, "not available", errors.New("refused"))
	if _, err := i.keys.findKey(ctx, "y"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("error %v, want fault.Unavailable while the ring is not available", err)
	}
}

// TestMemoryIsBounded checks the limit of remembered tokens, and that the latest token is
// remembered.
func TestMemoryIsBounded(t *testing.T) {
	v := newVerifiedTokens()
	for n := range 3 * maxVerified {
		v.putClaims(digest{byte(n), byte(n >> 8), byte(n >> 16)}, secretstest.SampleClaims(secretstest.NewClock()), 0)
	}
	if count := len(v.young) + len(v.old); count > 2*maxVerified {
		t.Errorf("%d tokens are remembered, want at most %d", count, 2*maxVerified)
	}
	last := 3*maxVerified - 1
	if _, ok, _ := v.getClaims(digest{byte(last), byte(last >> 8), byte(last >> 16)}); !ok {
		t.Error("the latest token is not remembered")
	}
}

// TestForgottenTokensAreNotStoredLate checks that a token is not remembered if its verification
// began before forgetAll, because its key may have been removed since then.
func TestForgottenTokensAreNotStoredLate(t *testing.T) {
	v, d := newVerifiedTokens(), digest{1}
	_, _, seen := v.getClaims(d)
	v.forgetAll()
	v.putClaims(d, secretstest.SampleClaims(secretstest.NewClock()), seen)
	if _, ok, _ := v.getClaims(d); ok {
		t.Error("a token that was verified before forgetAll is remembered")
	}
	_, _, seen = v.getClaims(d)
	v.putClaims(d, secretstest.SampleClaims(secretstest.NewClock()), seen)
	if _, ok, _ := v.getClaims(d); !ok {
		t.Error("a token that was verified after forgetAll is not remembered")
	}
}
