// Package page seals and opens the cursors of paged listings. A cursor is opaque to callers and
// authenticated: one that was changed, or made by another deployment, does not open
// (contract R-13). The package does not know what a cursor contains.
package page

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
)

const (
	macSize = 16
	// MaxCursor is the greatest length of a cursor in characters. Longer ones
	// are refused before they are decoded.
	MaxCursor = 4096
)

// Sealer makes and opens cursors with one secret key. It is safe for
// concurrent use.
type Sealer struct {
	key []byte
}

// NewSealer returns a sealer. The key is a secret of at least 32 bytes that
// all instances share.
func NewSealer(key []byte) *Sealer {
	return &Sealer{key: append([]byte(nil), key...)}
}

// Seal returns a cursor that carries content: base64url without padding.
func (s *Sealer) Seal(content []byte) string {
	sealed := make([]byte, 0, macSize+len(content))
	sealed = append(sealed, s.mac(content)...)
	sealed = append(sealed, content...)
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// Open returns what a cursor carries. A cursor that this sealer's key did not
// make is fault.Invalid.
func (s *Sealer) Open(cursor string) ([]byte, error) {
	if len(cursor) > MaxCursor || strings.ContainsAny(cursor, "\r\n") { // which the decoder would pass over
		return nil, Unknown()
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(sealed) < macSize {
		return nil, Unknown()
	}
	content := sealed[macSize:]
	if !hmac.Equal(sealed[:macSize], s.mac(content)) {
		return nil, Unknown()
	}
	return content, nil
}

func (s *Sealer) mac(content []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	_, _ = h.Write([]byte("tollgate page cursor\x00")) // a hash never fails to write
	_, _ = h.Write(content)                            // likewise
	return h.Sum(nil)[:macSize]
}

// Unknown returns the failure of a cursor that was not made here: fault.Invalid.
// It is also for who opens a cursor and cannot read what it carries.
func Unknown() error {
	return fault.New(fault.Invalid, "", "cursor is not one that this registry returned")
}
