package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
)

// AccessToken is a signed token that names a session. It prints as a placeholder.
type AccessToken string

// RefreshSecret is a refresh token in clear: opaque, 256 bit. It prints as a placeholder.
type RefreshSecret string

// DeviceSecret is a device token in clear: opaque, 256 bits (contract A-37). It prints as a
// placeholder.
type DeviceSecret string

// CookieSecret is the value of a session cookie in clear: opaque, 256 bits. It prints as a
// placeholder.
type CookieSecret string

// ClientSecret is the secret of a registered client in clear: opaque, 256 bits. It prints as a placeholder.
type ClientSecret string

// OTP is a one-time code in clear. It prints as a placeholder.
type OTP string

// String returns a placeholder.
func (AccessToken) String() string { return "[access token]" }

// String returns a placeholder.
func (RefreshSecret) String() string { return "[refresh token]" }

// String returns a placeholder.
func (DeviceSecret) String() string { return "[device token]" }

// String returns a placeholder.
func (CookieSecret) String() string { return "[session cookie]" }

// String returns a placeholder.
func (ClientSecret) String() string { return "[client secret]" }

// GoString returns a placeholder.
func (s ClientSecret) GoString() string { return s.String() }

// String returns a placeholder.
func (OTP) String() string { return "[code]" }

// GoString returns a placeholder.
func (t AccessToken) GoString() string { return t.String() }

// GoString returns a placeholder.
func (s RefreshSecret) GoString() string { return s.String() }

// GoString returns a placeholder.
func (s DeviceSecret) GoString() string { return s.String() }

// GoString returns a placeholder.
func (s CookieSecret) GoString() string { return s.String() }

// GoString returns a placeholder.
func (o OTP) GoString() string { return o.String() }

// NewSecret returns an opaque token of 256 random bits: base64url without padding, 43 characters.
func NewSecret[S RefreshSecret | DeviceSecret | CookieSecret | LinkSecret | ClientSecret](random [32]byte) S {
	return S(base64.RawURLEncoding.EncodeToString(random[:]))
}

// HashSecret returns the hash under which an opaque token is stored. A plain hash suffices for 256
// random bits.
func HashSecret[S RefreshSecret | DeviceSecret | CookieSecret | APISecret | LinkSecret | ClientSecret](s S) TokenHash {
	return sha256.Sum256([]byte(s))
}

// minRootSecret is the least length of a root secret in bytes.
const minRootSecret = 32

// RootSecret is the secret that all instances of a deployment share; keys for each purpose are
// derived from it. It prints as a placeholder.
type RootSecret []byte

// String returns a placeholder.
func (RootSecret) String() string { return "[root secret]" }

// GoString returns a placeholder.
func (r RootSecret) GoString() string { return r.String() }

// Derive returns the key for a purpose (HKDF with SHA-256, RFC 5869). It returns an error if the
// secret has fewer than 32 bytes.
func (r RootSecret) Derive(purpose string) (Key, error) {
	if len(r) < minRootSecret {
		return Key{}, errors.New("the root secret has fewer than 32 bytes")
	}
	k, err := hkdf.Key(sha256.New, r, nil, "tollgate "+purpose, sha256.Size)
	if err != nil {
		return Key{}, fmt.Errorf("derive the key for %s: %w", purpose, err)
	}
	return Key{k}, nil
}

// Key is a secret key of one purpose, for keyed hashes or for sealing. It prints as a placeholder.
type Key struct{ bytes []byte }

// String returns a placeholder.
func (Key) String() string { return "[key]" }

// GoString returns a placeholder.
func (k Key) GoString() string { return k.String() }

// NewHash returns a keyed hash (HMAC with SHA-256).
func (k Key) NewHash() hash.Hash { return hmac.New(sha256.New, k.bytes) }

// Sum returns the keyed hash (HMAC with SHA-256) of a text.
func (k Key) Sum(text string) [sha256.Size]byte {
	h := k.NewHash()
	_, _ = h.Write([]byte(text)) // a hash never fails to write
	return [sha256.Size]byte(h.Sum(nil))
}

// Nonce is the nonce of a seal. It must not be used twice with one key; a random one suffices.
type Nonce [12]byte

// Seal returns a secret encrypted with AES-256-GCM. Open decrypts it with the same key and the same
// about.
func (k Key) Seal(nonce Nonce, secret []byte, about string) (SealedSecret, error) {
	gcm, err := k.newGCM()
	if err != nil {
		return nil, err
	}
	return gcm.Seal(nonce[:], nonce[:], secret, []byte(about)), nil
}

// Open returns the secret that Seal has encrypted. It returns an error for another key, another
// about, and changed or truncated data.
func (k Key) Open(sealed SealedSecret, about string) ([]byte, error) {
	gcm, err := k.newGCM()
	if err != nil {
		return nil, err
	}
	if len(sealed) < gcm.NonceSize() {
		return nil, errors.New("a sealed secret is too short")
	}
	secret, err := gcm.Open(nil, sealed[:gcm.NonceSize()], sealed[gcm.NonceSize():], []byte(about))
	if err != nil {
		return nil, errors.New(
			"a sealed secret cannot be decrypted: it was changed, or sealed with another root secret")
	}
	return secret, nil
}

func (k Key) newGCM() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.bytes)
	if err != nil {
		return nil, fmt.Errorf("key of a seal: %w", err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("cipher of a seal: %w", err)
	}
	return gcm, nil
}

// SessionCopyPurpose is the purpose of the key that authenticates copies of sessions (contract
//
const SessionCopyPurpose = "session copies"

// LockoutPurpose is the purpose of the key of EmailLockout.
const LockoutPurpose = "lockout subjects"

// EmailLockout returns the subject of failed sign-ins with an address, whether or not it has an
// account.
func EmailLockout(k Key, email Email) LockoutKey {
	sum := k.Sum(string(email))
	return LockoutKey("email:" + hex.EncodeToString(sum[:]))
}

// DeviceLockout returns the subject of failed sign-ins on a device that has shown its token
// (contract A-16).
func DeviceLockout(device DeviceID) LockoutKey { return LockoutKey("device:" + string(device)) }

// ActsLockout returns the subject of wrong passwords and codes of a person who is signed in. It is
// separate from those of sign-ins, so that a stolen session cannot lock sign-in, and failed
// sign-ins cannot lock changes of the account.
func ActsLockout(user UserID) LockoutKey { return LockoutKey("acts:" + string(user)) }

// CommandLockout returns the subject of wrong codes of commands that a person has entered.
func CommandLockout(user UserID) LockoutKey { return LockoutKey("command:" + string(user)) }
