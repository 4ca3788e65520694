package publisher

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	_, p384 := newP384(t)
	for _, k := range []Key{newEd25519(t, 1), p384} {
		algorithm, encoded, _ := strings.Cut(k.String(), ":")
		same, err := ParseKey(Algorithm(algorithm), encoded)
		if err != nil || same.String() != k.String() || same.IsZero() {
			t.Errorf("ParseKey(%q, %q) = %s, %v", algorithm, encoded, same, err)
		}
		if want := algorithm + ":" + encoded[:8]; same.Fingerprint() != want {
			t.Errorf("fingerprint of %s = %s, want %s", k, same.Fingerprint(), want)
		}
	}
	if (Key{}).Fingerprint() != ":" || !(Key{}).IsZero() {
		t.Errorf("the zero key has fingerprint %q", Key{}.Fingerprint())
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	private, p384 := newP384(t)
	compressed := elliptic.MarshalCompressed(elliptic.P384(), private.X, private.Y)
	uncompressed, err := private.PublicKey.Bytes()
	must.Succeed(t, err)
	ed := newEd25519(t, 1).encoded
	for defect, test := range map[string]struct {
		algorithm Algorithm
		encoded   string
		message   string
	}{
		"no algorithm":                {"", ed, "algorithm must be"},
		"unknown algorithm":           {"rsa", ed, `not "rsa"`},
		"algorithm in upper case":     {"ED25519", ed, "algorithm must be"},
		"empty":                       {Ed25519, "", "has 0"},
		"not base64":                  {Ed25519, "!" + ed[1:], "base64"},
		"base64 for URLs":             {Ed25519, strings.Repeat("-", 43) + "=", "base64"},
		"without padding":             {Ed25519, strings.TrimRight(ed, "="), "base64"},
		"bits after the end":          {Ed25519, strings.Repeat("A", 42) + "B=", "base64"},
		"a line end within":           {Ed25519, ed[:9] + "\n" + ed[9:], "base64"},
		"a carriage return":           {Ed25519, ed[:9] + "\r" + ed[9:], "base64"},
		"a line end behind":           {Ed25519, ed + "\n", "base64"},
		"31 bytes":                    {Ed25519, encodeKey(make([]byte, 31)), "has 31"},
		"33 bytes":                    {Ed25519, encodeKey(make([]byte, 33)), "has 33"},
		"more characters than 128":    {Ed25519, strings.Repeat("A", 132), "128 characters"},
		"P-384 as ed25519":            {Ed25519, p384.encoded, "has 49"},
		"ed25519 as P-384":            {ECDSAP384, ed, "49 bytes"},
		"an uncompressed point":       {ECDSAP384, encodeKey(uncompressed), "128 characters"},
		"an uncompressed short point": {ECDSAP384, encodeKey(uncompressed[:49]), "compressed point"},
		"the point at infinity":       {ECDSAP384, encodeKey(make([]byte, 49)), "compressed point"},
		"one byte less":               {ECDSAP384, encodeKey(compressed[:48]), "49 bytes"},
		"one byte more":               {ECDSAP384, encodeKey(append(bytes.Clone(compressed), 0)), "49 bytes"},
		"a sign that does not exist":  {ECDSAP384, encodeKey(append([]byte{5}, compressed[1:]...)), "compressed point"},
		"not on the curve":            {ECDSAP384, encodeKey(outsideCurve()), "compressed point"},
		"a coordinate over the field": {
			ECDSAP384, encodeKey(append([]byte{2}, bytes.Repeat([]byte{0xff}, 48)...)), "compressed point",
		},
	} {
		k, err := ParseKey(test.algorithm, test.encoded)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), test.message) || !k.IsZero() {
			t.Errorf("%s: ParseKey(%q, %q) = %s, %v, want a fault with %q", defect, test.algorithm, test.encoded, k,
				err, test.message)
		}
	}
}

// outsideCurve returns a compressed point whose x, with y² = x³ - 3x + b, has no y on P-384.
func outsideCurve() []byte {
	curve := elliptic.P384().Params()
	for x := int64(1); ; x++ {
		square := new(big.Int).Add(big.NewInt(x*x*x-3*x), curve.B)
		if big.Jacobi(square.Mod(square, curve.P), curve.P) < 0 {
			return append([]byte{2}, big.NewInt(x).FillBytes(make([]byte, 48))...)
		}
	}
}

// smallOrder has the y of every point of order 1, 2, 4 and 8 of edwards25519 in the encodings that
// fit 32 bytes: 0 and 1 also as p and p+1. There are 8 such points, because they are a cyclic
// group.
var smallOrder = []string{
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0100000000000000000000000000000000000000000000000000000000000000",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
}

// TestParseKeyRefusesSmallOrder makes a signature for each key of small order without a private
// key, and checks that ParseKey refuses the key.
func TestParseKeyRefusesSmallOrder(t *testing.T) {
	t.Parallel()
	for _, y := range smallOrder {
		for _, sign := range []byte{0, 0x80} {
			raw, err := hex.DecodeString(y)
			must.Succeed(t, err)
			raw[31] |= sign
			if !canForge(raw) {
				t.Errorf("no signature was forged for key %x", raw)
			}
			if k, err := ParseKey(Ed25519, encodeKey(raw)); !fault.Is(err, fault.Invalid) ||
				!strings.Contains(err.Error(), "everybody can sign") {
				t.Errorf("ParseKey of %x = %s, %v, want a fault", raw, k, err)
			}
		}
	}
}

// canForge reports whether crypto/ed25519 accepts, for some message, a signature whose R is a point
// of small order and whose S is 0.
func canForge(key []byte) bool {
	message := make([]byte, 4)
	for n := range uint32(200) {
		binary.BigEndian.PutUint32(message, n)
		for _, y := range smallOrder {
			signature, _ := hex.DecodeString(y + strings.Repeat("00", 32))
			for range 2 {
				if ed25519.Verify(key, message, signature) {
					return true
				}
				signature[31] ^= 0x80
			}
		}
	}
	return false
}

// TestVerifyEd25519 has the first test vectors of RFC 8032, section 7.1.
func TestVerifyEd25519(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ public, message, signature string }{
		{
			"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
			"e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
		},
		{
			"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
			"92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
		},
		{
			"fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
			"6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
		},
	} {
		public, _ := hex.DecodeString(test.public)
		message, _ := hex.DecodeString(test.message)
		k, err := ParseKey(Ed25519, encodeKey(public))
		must.Succeed(t, err)
		for _, text := range []string{test.signature, strings.ToUpper(test.signature)} {
			if !k.Verify(message, parse(t, ParseSignature, text)) {
				t.Errorf("%s does not verify %s", k, text)
			}
		}
		if k.Verify(append(message, 0), parse(t, ParseSignature, test.signature)) {
			t.Errorf("%s verifies the signature of another message", k)
		}
		for _, text := range []string{
			test.signature[2:], test.signature + "00", test.signature + strings.Repeat("00", 32), test.signature[:64],
		} {
			if k.Verify(message, parse(t, ParseSignature, text)) {
				t.Errorf("%s verifies a signature of %d characters", k, len(text))
			}
		}
		if newEd25519(t, 1).Verify(message, parse(t, ParseSignature, test.signature)) ||
			(Key{}).Verify(message, parse(t, ParseSignature, test.signature)) {
			t.Error("another key verifies the signature")
		}
	}
}

func TestVerifyP384(t *testing.T) {
	t.Parallel()
	message := []byte("2026-01-31T12:00:00Z")
	private, k := newP384(t)
	signature := signP384(t, private, message)
	order := elliptic.P384().Params().N
	if !k.Verify(message, Signature{signature}) {
		t.Fatal("the key does not verify its signature")
	}
	_, other := newP384(t)
	mirrored, _ := base64.StdEncoding.DecodeString(k.encoded)
	mirrored[0] ^= 1 // the point with the other y
	opposite, err := ParseKey(ECDSAP384, encodeKey(mirrored))
	must.Succeed(t, err)
	for name, wrong := range map[string]Key{
		"another key": other, "the opposite point": opposite, "an ed25519 key": newEd25519(t, 1), "the zero key": {},
	} {
		if wrong.Verify(message, Signature{signature}) {
			t.Errorf("%s verifies the signature", name)
		}
	}
	if k.Verify([]byte("2026-01-31T12:00:01Z"), Signature{signature}) {
		t.Error("the key verifies the signature of another message")
	}
	r, s := signature[:48], signature[48:]
	zero := make([]byte, 48)
	for defect, wrong := range map[string][]byte{
		"empty":                 nil,
		"a byte less":           signature[:95],
		"a byte more":           append(bytes.Clone(signature), 0),
		"R alone":               r,
		"R is 0":                slices.Concat(zero, s),
		"S is 0":                slices.Concat(r, zero),
		"both are 0":            make([]byte, 96),
		"S is the order":        slices.Concat(r, order.FillBytes(make([]byte, 48))),
		"R and S are exchanged": slices.Concat(s, r),
		"all bits are set":      bytes.Repeat([]byte{0xff}, 96),
	} {
		if k.Verify(message, Signature{wrong}) {
			t.Errorf("%s: the key verifies the signature", defect)
		}
	}
}

func TestParseSignatureRefuses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "0", "0g", "zz", " 00", "00\n", "0x00", strings.Repeat("0", 385), strings.Repeat("0", 386),
	} {
		if _, err := ParseSignature(s); !fault.Is(err, fault.Invalid) ||
			!strings.HasPrefix(err.Error(), "signed_timestamp must") {
			t.Errorf("ParseSignature(%q) = %v, want a fault that names the field", s, err)
		}
	}
	if _, err := ParseSignature(strings.Repeat("0", 384)); err != nil {
		t.Errorf("ParseSignature of 384 digits = %v", err)
	}
}

func TestCanonicalHasOneFormOfAnECDSASignature(t *testing.T) {
	t.Parallel()
	message := []byte("2026-01-31T12:00:00Z")
	order := elliptic.P384().Params().N
	private, k := newP384(t)
	var before []byte
	for range 20 { // so that the smaller s is sometimes the given one
		given := signP384(t, private, message)
		other := bytes.Clone(given)
		new(big.Int).Sub(order, new(big.Int).SetBytes(given[48:])).FillBytes(other[48:])
		canonical := Signature{given}.Canonical()
		switch {
		case !k.Verify(message, Signature{given}) || !k.Verify(message, Signature{other}) ||
			!k.Verify(message, Signature{canonical}):
			t.Fatalf("one of the forms of %x is not valid", given)
		case !bytes.Equal(canonical, Signature{other}.Canonical()):
			t.Fatalf("%x and %x have different canonical forms", given, other)
		case !bytes.Equal(canonical, given) && !bytes.Equal(canonical, other):
			t.Fatalf("the canonical form of %x is %x", given, canonical)
		case bytes.Equal(canonical, before):
			t.Fatal("two signatures have the same canonical form")
		}
		before = canonical
	}
}

func TestCanonicalKeepsOtherSignatures(t *testing.T) {
	t.Parallel()
	order := elliptic.P384().Params().N.Bytes()
	for name, raw := range map[string][]byte{
		"ed25519":        bytes.Repeat([]byte{0xfe}, 64),
		"a wrong length": bytes.Repeat([]byte{0xfe}, 95),
		"S is the order": slices.Concat(bytes.Repeat([]byte{1}, 48), order),
		"S is too large": bytes.Repeat([]byte{0xff}, 96),
		"S is 0":         slices.Concat(bytes.Repeat([]byte{1}, 48), make([]byte, 48)),
	} {
		if got := (Signature{raw}).Canonical(); !bytes.Equal(got, raw) {
			t.Errorf("%s: the canonical form of %x is %x", name, raw, got)
		}
	}
}

func TestFingerprintMatchesTheBeginningOfAKey(t *testing.T) {
	t.Parallel()
	k := newEd25519(t, 1)
	changed := []byte(k.String()[:20])
	changed[19] ^= 1
	for text, want := range map[string]bool{
		"":                               true,
		k.Fingerprint():                  true,
		k.String()[:20]:                  true,
		k.String():                       true,
		k.String() + "A":                 false,
		string(changed):                  false,
		newEd25519(t, 2).Fingerprint():   false,
		"ecdsap384:" + k.encoded[:8]:     false,
		"ed25519:" + swapCase(k.encoded): false,
		"ed25519:" + k.encoded[1:]:       false,
	} {
		f, err := ParseFingerprint(text)
		if err != nil || f.String() != text || f.Matches(k) != want {
			t.Errorf("ParseFingerprint(%q) = %q, %v, matches %s: %t, want %t", text, f, err, k, f.Matches(k), want)
		}
	}
}

func TestParseFingerprintRefuses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"ed25519", "ed25519:", "ed25519:1234567", "12345678", ":12345678", "rsa:12345678", "Ed25519:12345678",
		"ed25519 :12345678",
		"ed25519: 1234567", "ed25519:12345678\n", "ed25519:1234567-", "ed25519:1234567_", "ed25519:1234567é",
		"ed25519:1234567*", "ed25519:" + strings.Repeat("A", 129),
	} {
		if f, err := ParseFingerprint(s); !fault.Is(err, fault.Invalid) ||
			!strings.HasPrefix(err.Error(), "keyFingerprint must") {
			t.Errorf("ParseFingerprint(%q) = %q, %v, want a fault that names the field", s, f, err)
		}
	}
}

func BenchmarkVerifyEd25519(b *testing.B) {
	message := []byte("2026-01-31T12:00:00Z")
	s := Signature{ed25519.Sign(ed25519Private(1), message)}
	k := newEd25519(b, 1)
	for b.Loop() {
		if !k.Verify(message, s) {
			b.Fatal("the signature is not valid")
		}
	}
}

func BenchmarkVerifyP384(b *testing.B) {
	message := []byte("2026-01-31T12:00:00Z")
	private, k := newP384(b)
	s := Signature{signP384(b, private, message)}
	for b.Loop() {
		if !k.Verify(message, s) {
			b.Fatal("the signature is not valid")
		}
	}
}

// ed25519Private returns a private key that depends only on seed.
func ed25519Private(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// newEd25519 returns the public key of ed25519Private.
func newEd25519(t testing.TB, seed byte) Key {
	t.Helper()
	k, err := ParseKey(Ed25519, encodeKey(ed25519Private(seed)[32:]))
	must.Succeed(t, err)
	return k
}

// newP384 returns a new key pair.
func newP384(t testing.TB) (*ecdsa.PrivateKey, Key) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must.Succeed(t, err)
	k, err := ParseKey(ECDSAP384, encodeKey(elliptic.MarshalCompressed(elliptic.P384(), private.X, private.Y)))
	must.Succeed(t, err)
	return private, k
}

// signP384 returns R and S of a new signature.
func signP384(t testing.TB, private *ecdsa.PrivateKey, message []byte) []byte {
	t.Helper()
	digest := sha512.Sum384(message)
	r, s, err := ecdsa.Sign(rand.Reader, private, digest[:])
	must.Succeed(t, err)
	signature := make([]byte, 96)
	r.FillBytes(signature[:48])
	s.FillBytes(signature[48:])
	return signature
}

func encodeKey(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

// swapCase returns s with upper case for lower case and the reverse.
func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r ^ 0x20
		}
		return r
	}, s)
}
