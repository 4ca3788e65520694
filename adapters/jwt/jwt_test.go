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

	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
)

func quiet() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}

func open(t *testing.T, c Config, ring authstore.KeyRing, clk *clocktest.Manual) *Issuer {
	t.Helper()
	c.Issuer, c.Audience = "tollgate", "tollgate"
	i, cleanup, err := Open(context.Background(), c, ring, clk, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cleanup)
	return i
}

func ring() authstore.KeyRing { return records.NewKeyring(records.New()) }

func TestContract(t *testing.T) {
	secretstest.RunTokens(t, func(t *testing.T, c *clocktest.Manual) secretstest.TokenSubject {
		i := open(t, Config{DataDir: t.TempDir()}, ring(), c)
		return secretstest.TokenSubject{TokenSigner: i, TokenVerifier: i, PublishedKeys: i}
	})
}

// Appendix A.3 of RFC 8037 gives the thumbprint of this key.
func TestThumbprint(t *testing.T) {
	x, err := base64.RawURLEncoding.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	if err != nil {
		t.Fatal(err)
	}
	if got := thumbprint(ed25519.PublicKey(x)); got != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" {
		t.Errorf("thumbprint %s", got)
	}
}

func TestTokenForm(t *testing.T) {
	clk := secretstest.NewClock()
	i := open(t, Config{DataDir: t.TempDir()}, ring(), clk)
	token, err := i.Sign(context.Background(), secretstest.SampleClaims(clk))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(token), ".")
	var header, claims map[string]any
	for n, into := range []*map[string]any{&header, &claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[n])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	if header["alg"] != "EdDSA" || header["typ"] != "at+jwt" || header["kid"] != string(i.keys.currentSigner().id) {
		t.Errorf("header %v", header)
	}
	for _, name := range []string{"iss", "aud", "sub", "iat", "exp", "jti", "sid"} {
		if claims[name] == nil {
			t.Errorf("claim %s is missing in %v", name, claims)
		}
	}
}

// Every token here is well signed by the right key, but for the first; each is wrong in one other
// way.
func TestRefusesForged(t *testing.T) {
	clk := secretstest.NewClock()
	i := open(t, Config{DataDir: t.TempDir()}, ring(), clk)
	key := i.keys.currentSigner()
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, forge := range map[string]func(*jwt.Token, *jwt.MapClaims) any{
		"another key": func(*jwt.Token, *jwt.MapClaims) any { return stranger },
		"alg none": func(tk *jwt.Token, _ *jwt.MapClaims) any {
			tk.Method = jwt.SigningMethodNone
			tk.Header["alg"] = "none"
			return jwt.UnsafeAllowNoneSignatureType
		},
		"alg HS256": func(tk *jwt.Token, _ *jwt.MapClaims) any {
			tk.Method = jwt.SigningMethodHS256
			tk.Header["alg"] = "HS256"
			return []byte(key.publicKey())
		},
		"typ JWT":            func(tk *jwt.Token, _ *jwt.MapClaims) any { tk.Header["typ"] = "JWT"; return key.private },
		"crit":               func(tk *jwt.Token, _ *jwt.MapClaims) any { tk.Header["crit"] = []string{"exp"}; return key.private },
		"no typ":             func(tk *jwt.Token, _ *jwt.MapClaims) any { delete(tk.Header, "typ"); return key.private },
		"unknown kid":        func(tk *jwt.Token, _ *jwt.MapClaims) any { tk.Header["kid"] = "x"; return key.private },
		"no kid":             func(tk *jwt.Token, _ *jwt.MapClaims) any { delete(tk.Header, "kid"); return key.private },
		"another issuer":     func(_ *jwt.Token, c *jwt.MapClaims) any { (*c)["iss"] = "x"; return key.private },
		"another audience":   func(_ *jwt.Token, c *jwt.MapClaims) any { (*c)["aud"] = "x"; return key.private },
		"no audience":        func(_ *jwt.Token, c *jwt.MapClaims) any { delete(*c, "aud"); return key.private },
		"no expiry":          func(_ *jwt.Token, c *jwt.MapClaims) any { delete(*c, "exp"); return key.private },
		"no session":         func(_ *jwt.Token, c *jwt.MapClaims) any { delete(*c, "sid"); return key.private },
		"session is no UUID": func(_ *jwt.Token, c *jwt.MapClaims) any { (*c)["sid"] = "x"; return key.private },
		"no subject":         func(_ *jwt.Token, c *jwt.MapClaims) any { delete(*c, "sub"); return key.private },
		"no id":              func(_ *jwt.Token, c *jwt.MapClaims) any { delete(*c, "jti"); return key.private },
		"expired and foreign": func(_ *jwt.Token, c *jwt.MapClaims) any {
			(*c)["exp"], (*c)["aud"] = clk.Now().Unix()-1, "x"
			return key.private
		},
	} {
		t.Run(name, func(t *testing.T) {
			good := secretstest.SampleClaims(clk)
			claims := jwt.MapClaims{
				"iss": "tollgate", "aud": "tollgate", "sub": string(good.UserID), "sid": string(good.SessionID), "jti": good.ID,
				"iat": good.IssuedAt.Unix(), "exp": good.ExpiresAt.Unix(),
			}
			token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
			token.Header["typ"], token.Header["kid"] = tokenType, string(key.id)
			text, err := token.SignedString(forge(token, &claims))
			if err != nil {
				t.Fatal(err)
			}
			_, err = i.Verify(context.Background(), auth.AccessToken(text))
			secretstest.WantCode(t, name, err, auth.CodeInvalidToken)
		})
	}
}

func TestParallelStartsShareOneKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	ids := make([]authstore.KeyID, 8)
	var wait sync.WaitGroup
	for n := range ids {
		wait.Go(func() {
			loaded, err := loadKeys(dir, true)
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
			t.Fatalf("keys differ: %v", ids)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("folder holds %v, error %v; want one file", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v; want 0600", info.Mode(), err)
	}
}

func TestInstancesWithOtherFilesVerifyEachOther(t *testing.T) {
	clk, shared := secretstest.NewClock(), ring()
	a := open(t, Config{DataDir: t.TempDir()}, shared, clk)
	b := open(t, Config{DataDir: t.TempDir()}, shared, clk)
	token, err := b.Sign(context.Background(), secretstest.SampleClaims(clk))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Verify(context.Background(), token); err != nil {
		t.Errorf("verify another instance's token: %v", err)
	}
	list, err := a.PublicKeys(context.Background())
	if err != nil || len(list) != 2 {
		t.Errorf("%d keys, error %v; want both", len(list), err)
	}
}

// Instances that start one right after the other are known by their first tokens.
func TestInstancesThatStartTogetherAreKnownAtOnce(t *testing.T) {
	clk, shared := secretstest.NewClock(), ring()
	old := open(t, Config{DataDir: t.TempDir()}, shared, clk)
	for range 3 {
		token, err := open(t, Config{DataDir: t.TempDir()}, shared, clk).Sign(context.Background(), secretstest.SampleClaims(clk))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := old.Verify(context.Background(), token); err != nil {
			t.Errorf("the first token of a new instance: %v", err)
		}
	}
}

func writeKey(t *testing.T, dir, name string) authstore.KeyID {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return thumbprint(public)
}

func TestRotation(t *testing.T) {
	ctx, dir, clk := context.Background(), t.TempDir(), secretstest.NewClock()
	first := writeKey(t, dir, "2025.pem")
	i := open(t, Config{KeysDir: dir}, ring(), clk)
	early, err := i.Sign(ctx, secretstest.SampleClaims(clk))
	if err != nil {
		t.Fatal(err)
	}
	second := writeKey(t, dir, "2026.pem")
	if err := i.keys.reloadFiles(ctx); err != nil {
		t.Fatal(err)
	}
	if got := i.keys.currentSigner().id; got != second || got == first {
		t.Errorf("%s signs, want the last by name", got)
	}
	if _, err := i.Verify(ctx, early); err != nil {
		t.Errorf("a token of the earlier key: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "2025.pem")); err != nil {
		t.Fatal(err)
	}
	if err := i.keys.reloadFiles(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = i.Verify(ctx, early)
	secretstest.WantCode(t, "a token of a key that was taken away", err, auth.CodeInvalidToken)
	if list, err := i.PublicKeys(ctx); err != nil || len(list) != 1 || list[0].ID != second {
		t.Errorf("keys %v, error %v; want the second alone", list, err)
	}
}

// TestRemovedKeysAreRefusedElsewhere wants a key that one instance lost to be no good on others
// that learnt it from the ring, on the one itself when it starts again, and as good as any when it
// is back.
func TestRemovedKeysAreRefusedElsewhere(t *testing.T) {
	ctx, dir, clk, shared := context.Background(), t.TempDir(), secretstest.NewClock(), ring()
	writeKey(t, dir, "2025.pem")
	signs, other := open(t, Config{KeysDir: dir}, shared, clk), open(t, Config{DataDir: t.TempDir()}, shared, clk)
	token, err := signs.Sign(ctx, secretstest.SampleClaims(clk))
	if err != nil {
		t.Fatal(err)
	}
	verify := func(i *Issuer, want bool) {
		t.Helper()
		if _, err := i.Verify(ctx, token); (err == nil) != want {
			t.Errorf("the token is good: %t, error %v", want, err)
		}
	}
	reload := func(all ...*Issuer) {
		t.Helper()
		for _, i := range all {
			if err := i.keys.reloadFiles(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	verify(other, true)
	writeKey(t, dir, "2026.pem")
	aside := filepath.Join(t.TempDir(), "2025.pem")
	if err := os.Rename(filepath.Join(dir, "2025.pem"), aside); err != nil {
		t.Fatal(err)
	}
	reload(signs, other)
	verify(signs, false)
	verify(other, false)
	verify(open(t, Config{KeysDir: dir}, shared, clk), false)
	if err := os.Rename(aside, filepath.Join(dir, "2025.pem")); err != nil {
		t.Fatal(err)
	}
	reload(signs)
	clk.Advance(lookupEvery)
	verify(signs, true)
	verify(other, true)
}

func TestBadKeyFilesLeavePresentKeys(t *testing.T) {
	ctx, dir, clk := context.Background(), t.TempDir(), secretstest.NewClock()
	writeKey(t, dir, "1.pem")
	i := open(t, Config{KeysDir: dir}, ring(), clk)
	before := i.keys.currentSigner().id
	for name, text := range map[string]string{
		"no PEM": "secret words", "another block": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"no PKCS#8": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "2.pem"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := i.keys.reloadFiles(ctx)
		if err == nil || !strings.Contains(err.Error(), "2.pem") || strings.Contains(err.Error(), "secret words") {
			t.Errorf("%s: error %v, want one that names the file and shows nothing of it", name, err)
		}
		if got := i.keys.currentSigner().id; got != before {
			t.Errorf("%s: the signing key changed", name)
		}
	}
}

// countingRing counts its calls, and returns an error while fail is set.
type countingRing struct {
	authstore.KeyRing
	mu    sync.Mutex
	asked int
	err   error
}

func (r *countingRing) PublicKeys(ctx context.Context, since time.Time) ([]authstore.PublicKey, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.err != nil {
		return nil, r.err
	}
	return r.KeyRing.PublicKeys(ctx, since)
}

// TestKeysWhileTheRingIsAway wants the keys that are known published all the same.
func TestKeysWhileTheRingIsAway(t *testing.T) {
	clk, shared := secretstest.NewClock(), ring()
	counting := &countingRing{KeyRing: shared}
	i := open(t, Config{DataDir: t.TempDir()}, counting, clk)
	other := open(t, Config{DataDir: t.TempDir()}, shared, clk)
	before, err := i.PublicKeys(t.Context())
	if err != nil || len(before) != 2 {
		t.Fatalf("%d keys, %v, want both", len(before), err)
	}
	if _, err := other.PublicKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	counting.mu.Lock()
	counting.err = fault.Wrap(fault.Unavailable, "", "away", errors.New("refused"))
	counting.mu.Unlock()
	after, err := i.PublicKeys(t.Context())
	if err != nil || len(after) != 2 || after[0].ID != before[0].ID || after[1].ID != before[1].ID {
		t.Errorf("%v, %v, want the keys that are known", after, err)
	}
}

// TestKeyOutlivesItsTokens checks that a token is valid until its end even if the instance that
// signed it has stopped.
func TestKeyOutlivesItsTokens(t *testing.T) {
	clk, shared := secretstest.NewClock(), ring()
	const life = 3 * time.Hour
	token, err := open(t, Config{DataDir: t.TempDir(), TokenLife: life}, shared, clk).Sign(t.Context(), func() secrets.TokenClaims {
		c := secretstest.SampleClaims(clk)
		c.ExpiresAt = clk.Now().Add(life)
		return c
	}())
	if err != nil {
		t.Fatal(err)
	}
	clk.Advance(life - time.Second)
	if _, err := open(t, Config{DataDir: t.TempDir(), TokenLife: life}, shared, clk).Verify(t.Context(), token); err != nil {
		t.Errorf("a token of an instance that is gone: %v", err)
	}
}

func TestUnknownKeysAreNoLoadOnTheRing(t *testing.T) {
	ctx, clk, counting := context.Background(), secretstest.NewClock(), &countingRing{KeyRing: ring()}
	i := open(t, Config{DataDir: t.TempDir()}, counting, clk)
	for n := range 50 {
		_, err := i.keys.findKey(ctx, authstore.KeyID(strings.Repeat("x", n+1)))
		if !fault.Is(err, fault.NotFound) {
			t.Fatalf("error %v, want fault.NotFound", err)
		}
	}
	if counting.asked != lookupsAtOnce {
		t.Errorf("the ring was asked %d times, want %d", counting.asked, lookupsAtOnce)
	}
	clk.Advance(lookupEvery)
	counting.err = fault.Wrap(fault.Unavailable, "", "away", errors.New("refused"))
	if _, err := i.keys.findKey(ctx, "y"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("error %v, want fault.Unavailable while the ring is away", err)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	v := newVerifiedTokens()
	for n := range 3 * maxVerified {
		v.putClaims(digest{byte(n), byte(n >> 8), byte(n >> 16)}, secretstest.SampleClaims(secretstest.NewClock()), 0)
	}
	if held := len(v.young) + len(v.old); held > 2*maxVerified {
		t.Errorf("holds %d tokens, at most %d are allowed", held, 2*maxVerified)
	}
	last := 3*maxVerified - 1
	if _, ok, _ := v.getClaims(digest{byte(last), byte(last >> 8), byte(last >> 16)}); !ok {
		t.Error("the latest token is forgotten")
	}
}

// A token that a key found good just before the key was taken away must not be remembered after.
func TestNothingVerifiedBeforeForgettingIsKept(t *testing.T) {
	v, d := newVerifiedTokens(), digest{1}
	_, _, seen := v.getClaims(d)
	v.forgetAll()
	v.putClaims(d, secretstest.SampleClaims(secretstest.NewClock()), seen)
	if _, ok, _ := v.getClaims(d); ok {
		t.Error("a token verified with keys that are gone is remembered")
	}
	_, _, seen = v.getClaims(d)
	v.putClaims(d, secretstest.SampleClaims(secretstest.NewClock()), seen)
	if _, ok, _ := v.getClaims(d); !ok {
		t.Error("a token verified with the present keys is not remembered")
	}
}
