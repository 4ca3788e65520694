// Package softkey is an authenticator for passkeys in software, for tests. Everything that a service
// must check can be set wrong.
package softkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
)

// The algorithms, as COSE numbers them.
const (
	EdDSA = -8
	ES256 = -7
	RS256 = -257
)

// The flags of authenticator data (WebAuthn, section 6.1).
const (
	UserPresent    = 1
	UserVerified   = 4
	BackupEligible = 8
	BackedUp       = 16
	attested       = 64
)

// Key is the key of one passkey.
type Key struct {
	ID        []byte
	Handle    []byte // of the person
	Algorithm int
	Count     uint32

	private crypto.Signer
}

// New returns a key with an id of 32 bytes. It panics without randomness.
func New(algorithm int) *Key {
	k := &Key{ID: random(32), Algorithm: algorithm}
	var err error
	switch algorithm {
	case EdDSA:
		_, k.private, err = ed25519.GenerateKey(rand.Reader)
	case RS256:
		k.private, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		k.private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		panic(err)
	}
	return k
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// Response is what an authenticator answers. Its zero value with a challenge, a party and an origin
// is right.
type Response struct {
	Challenge   []byte
	Party       string // the id
	Origin      string
	Type        string // instead of webauthn.create or webauthn.get
	CrossOrigin bool
	Flags       byte // instead of UserPresent and UserVerified
	Handle      []byte
	Alter       bool // the signed data after signing
}

func (r Response) clientData(kind string) []byte {
	if r.Type != "" {
		kind = r.Type
	}
	text, _ := json.Marshal(map[string]any{ // never fails
		"type": kind, "challenge": encode(r.Challenge), "origin": r.Origin, "crossOrigin": r.CrossOrigin,
	})
	return text
}

// data returns authenticator data.
func (r Response) data(count uint32, extra byte) []byte {
	flags := r.Flags
	if flags == 0 {
		flags = UserPresent | UserVerified
	}
	hash := sha256.Sum256([]byte(r.Party))
	return binary.BigEndian.AppendUint32(append(hash[:], flags|extra), count)
}

// Register returns a PublicKeyCredential of navigator.credentials.create, with attestation none.
func (k *Key) Register(r Response) []byte {
	data := append(r.data(k.Count, attested), make([]byte, 16)...) // without an AAGUID
	data = binary.BigEndian.AppendUint16(data, uint16(len(k.ID)))
	data = append(append(data, k.ID...), k.public()...)
	object := append([]byte{0xa3}, text("fmt")...)
	object = append(append(object, text("none")...), text("attStmt")...)
	object = append(append(object, 0xa0), text("authData")...)
	object = append(object, bytes(data)...)
	return k.envelope(map[string]any{
		"clientDataJSON": encode(r.clientData("webauthn.create")), "attestationObject": encode(object),
		"transports": []string{"internal"},
	})
}

// Sign returns a PublicKeyCredential of navigator.credentials.get. It counts the signature.
func (k *Key) Sign(r Response) []byte {
	if k.Count > 0 {
		k.Count++
	}
	client, data := r.clientData("webauthn.get"), r.data(k.Count, 0)
	hash := sha256.Sum256(client)
	signed := append(append([]byte(nil), data...), hash[:]...)
	options := crypto.SignerOpts(crypto.Hash(0))
	if k.Algorithm != EdDSA {
		sum := sha256.Sum256(signed)
		signed, options = sum[:], crypto.SHA256
	}
	signature, err := k.private.Sign(rand.Reader, signed, options)
	if err != nil {
		panic(err)
	}
	if r.Alter {
		data[len(data)-1]++
	}
	handle := k.Handle
	if r.Handle != nil {
		handle = r.Handle
	}
	return k.envelope(map[string]any{
		"clientDataJSON": encode(client), "authenticatorData": encode(data), "signature": encode(signature),
		"userHandle": encode(handle),
	})
}

func (k *Key) envelope(response map[string]any) []byte {
	all, _ := json.Marshal(map[string]any{ // never fails
		"id": encode(k.ID), "rawId": encode(k.ID), "type": "public-key", "response": response,
		"clientExtensionResults": map[string]any{}, "authenticatorAttachment": "platform",
	})
	return all
}

// public returns the public key as a COSE key (RFC 9052, section 7).
func (k *Key) public() []byte {
	switch public := k.private.Public().(type) {
	case ed25519.PublicKey:
		return append([]byte{0xa4, 1, 1, 3, 0x27, 0x20, 6, 0x21}, bytes(public)...)
	case *rsa.PublicKey:
		out := append([]byte{0xa4, 1, 3, 3, 0x39, 1, 0, 0x20}, bytes(public.N.Bytes())...)
		return append(append(out, 0x21), bytes([]byte{1, 0, 1})...)
	case *ecdsa.PublicKey:
		point, _ := public.Bytes() // never fails for a key on the curve
		out := append([]byte{0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21}, bytes(point[1:33])...)
		return append(append(out, 0x22), bytes(point[33:])...)
	}
	return nil
}

// text returns a short text in CBOR.
func text(s string) []byte { return append([]byte{0x60 | byte(len(s))}, s...) }

// bytes returns a byte string in CBOR.
func bytes(b []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{0x59}, uint16(len(b))), b...)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
