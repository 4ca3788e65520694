package publisher

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Algorithm is a signature algorithm.
type Algorithm string

// The algorithms of published keys (contract P-5).
const (
	Ed25519   Algorithm = "ed25519"
	ECDSAP384 Algorithm = "ecdsap384" // with SHA-384
)

const (
	p384Bytes       = 48                // of a coordinate and of a half of a signature
	compressedBytes = 1 + p384Bytes     // of an ECDSA P-384 key
	p384Signature   = 2 * p384Bytes     // R and S
	fingerprintKey  = 8                 // characters of the key in a fingerprint
	maxEncodedKey   = 128               // characters
	maxSignature    = 4 * p384Signature // characters of a hex signature that is parsed
)

// Key is a public key that a domain has published. ParseKey makes one; the zero value verifies no
// signature.
type Key struct {
	algorithm Algorithm
	encoded   string // standard base64
	ed25519   ed25519.PublicKey
	p384      *ecdsa.PublicKey
}

// ParseKey returns the key of an algorithm that base64 contains: the 32 bytes of an Ed25519 key, or
// the 49 bytes of a compressed P-384 point. It returns fault.Invalid for anything else, and for the
// Ed25519 keys of small order, for which everybody can make signatures.
func ParseKey(a Algorithm, encoded string) (Key, error) {
	if len(encoded) > maxEncodedKey {
		return Key{}, fault.Newf(fault.Invalid, "the key has more than %d characters", maxEncodedKey)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") { // the decoder skips line ends
		return Key{}, fault.New(fault.Invalid, "the key is not valid base64")
	}
	key := Key{algorithm: a, encoded: encoded}
	switch a {
	case Ed25519:
		if len(raw) != ed25519.PublicKeySize {
			return Key{}, fault.Newf(fault.Invalid, "an ed25519 key has %d bytes, and this one has %d",
				ed25519.PublicKeySize, len(raw))
		}
		if hasSmallOrder(raw) {
			return Key{}, fault.New(fault.Invalid,
				"the ed25519 key is one of the few for which everybody can sign, such as 32 zero bytes")
		}
		key.ed25519 = raw
	case ECDSAP384:
		key.p384 = parseCompressed(raw)
		if key.p384 == nil {
			return Key{},
				fault.Newf(fault.Invalid, "an ecdsap384 key is a compressed point of the curve, with %d bytes",
					compressedBytes)
		}
	default:
		return Key{}, fault.Newf(fault.Invalid, "the algorithm must be ed25519 or ecdsap384, not %s", quote(string(a)))
	}
	return key, nil
}

// parseCompressed returns the key at a compressed point, or nil if the point does not exist.
func parseCompressed(raw []byte) *ecdsa.PublicKey {
	if len(raw) != compressedBytes {
		return nil
	}
	x, y := elliptic.UnmarshalCompressed(elliptic.P384(), raw)
	if x == nil {
		return nil
	}
	point := make([]byte, 1+2*p384Bytes)
	point[0] = 4 // an uncompressed point (SEC 1, 2.3.3)
	x.FillBytes(point[1 : 1+p384Bytes])
	y.FillBytes(point[1+p384Bytes:])
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P384(), point)
	if err != nil {
		return nil
	}
	return key
}

// hasSmallOrder reports whether an Ed25519 key is one of the points of order 1, 2, 4 or 8. With
// such a key a signature does not depend on any secret (RFC 8032, 5.1.7; "Taming the many EdDSAs",
// section 2). The sign bit of the encoding does not matter.
func hasSmallOrder(raw []byte) bool {
	unsigned := slices.Clone(raw)
	unsigned[len(unsigned)-1] &= 0x7f
	for _, y := range []string{
		"0000000000000000000000000000000000000000000000000000000000000000", // order 4
		"0100000000000000000000000000000000000000000000000000000000000000", // order 1
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // order 2
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", // order 8
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", // order 8
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // 0, not reduced
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // 1, not reduced
	} {
		if hex.EncodeToString(unsigned) == y {
			return true
		}
	}
	return false
}

// String returns the algorithm and the whole key in base64.
func (k Key) String() string { return string(k.algorithm) + ":" + k.encoded }

// IsZero reports whether k is the zero value.
func (k Key) IsZero() bool { return k.algorithm == "" }

// Fingerprint returns the algorithm and the first 8 characters of the key in base64.
func (k Key) Fingerprint() string {
	return string(k.algorithm) + ":" + k.encoded[:min(fingerprintKey, len(k.encoded))]
}

// Verify reports whether the signature of message was made with the private half of the key.
func (k Key) Verify(message []byte, s Signature) bool {
	switch {
	case k.algorithm == Ed25519 && len(s.bytes) == ed25519.SignatureSize:
		return ed25519.Verify(k.ed25519, message, s.bytes)
	case k.algorithm == ECDSAP384 && len(s.bytes) == p384Signature:
		digest := sha512.Sum384(message)
		return ecdsa.Verify(k.p384, digest[:], new(big.Int).SetBytes(s.bytes[:p384Bytes]),
			new(big.Int).SetBytes(s.bytes[p384Bytes:]))
	}
	return false
}

// Signature is a signature whose algorithm is that of the key that verifies it.
type Signature struct{ bytes []byte }

// ParseSignature returns the signature that s contains in hexadecimal digits. It returns
// fault.Invalid for any other text. No key verifies a signature of a wrong length.
func ParseSignature(s string) (Signature, error) {
	if s == "" || len(s) > maxSignature {
		return Signature{}, fault.Newf(fault.Invalid, "signed_timestamp must have 1 to %d characters, and has %d",
			maxSignature, len(s))
	}
	raw, err := hex.DecodeString(s)
	if err != nil {
		return Signature{}, fault.New(fault.Invalid, "signed_timestamp must be a signature in hexadecimal digits")
	}
	return Signature{raw}, nil
}

// Canonical returns bytes that are the same for all signatures that can be made of one another
// without the private key. For ECDSA (r, s) and (r, n-s) are both valid; the smaller s is used. An
// Ed25519 signature has no other form (RFC 8032, 5.1.7: s is less than the order of the group).
func (s Signature) Canonical() []byte {
	if len(s.bytes) != p384Signature {
		return bytes.Clone(s.bytes)
	}
	low := new(big.Int).SetBytes(s.bytes[p384Bytes:])
	order := elliptic.P384().Params().N
	if other := new(big.Int).Sub(order, low); other.Sign() > 0 && other.Cmp(low) < 0 {
		low = other
	}
	canonical := bytes.Clone(s.bytes)
	low.FillBytes(canonical[p384Bytes:])
	return canonical
}

// Fingerprint is the beginning of a public key that a policy pins: an algorithm, a colon and at
// least the first 8 characters of the key in base64. ParseFingerprint makes one; the zero value
// matches every key.
type Fingerprint struct{ value string }

// ParseFingerprint returns the fingerprint that s contains; an empty text is the zero value. It
// returns fault.Invalid for anything else.
func ParseFingerprint(s string) (Fingerprint, error) {
	if s == "" {
		return Fingerprint{}, nil
	}
	algorithm, key, _ := strings.Cut(s, ":")
	switch {
	case algorithm != string(Ed25519) && algorithm != string(ECDSAP384),
		len(key) < fingerprintKey, len(key) > maxEncodedKey, strings.ContainsFunc(key, notInBase64):
		return Fingerprint{}, fault.New(fault.Invalid,
			"keyFingerprint must be ed25519 or ecdsap384, a colon and the first 8 or more characters of the key in base64")
	}
	return Fingerprint{s}, nil
}

// notInBase64 reports whether r does not occur in standard base64.
func notInBase64(r rune) bool {
	return !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z') && !('0' <= r && r <= '9') && r != '+' &&
		r != '/' && r != '='
}

// String returns the fingerprint as it was given.
func (f Fingerprint) String() string { return f.value }

// Matches reports whether the key begins as the fingerprint says.
func (f Fingerprint) Matches(k Key) bool { return strings.HasPrefix(k.String(), f.value) }
