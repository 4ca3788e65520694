// Package page has what paged listings share: the number of records of a page, and sealed cursors. A
// cursor is opaque to callers and authenticated: one that was changed, or made by another deployment,
// does not open (contract R-13). The package does not know what a cursor contains.
package page

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
)

const (
	macSize = 16
	// MaxCursor is the greatest length of a cursor in characters. Longer ones are refused before
	// they are decoded.
	MaxCursor = 4096
)

// Sealer makes and opens cursors with one secret key. It is safe for concurrent use.
type Sealer struct {
	key []byte
}

// NewSealer returns a sealer. The key is a secret of at least 32 bytes that all instances share.
func NewSealer(key []byte) *Sealer {
	return &Sealer{key: append([]byte(nil), key...)}
}

// Seal returns a cursor that carries content: base64url without padding.
func (s *Sealer) Seal(content []byte) string {
	sealed := make([]byte, 0, macSize+len(content))
	sealed = append(sealed, s.macOf(content)...)
	sealed = append(sealed, content...)
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// Open returns the content of a cursor. It returns fault.Invalid for a cursor that was not made
// with the key of this sealer.
func (s *Sealer) Open(cursor string) ([]byte, error) {
	if len(cursor) > MaxCursor || strings.ContainsAny(cursor, "\r\n") { // the decoder would ignore line breaks
		return nil, UnknownCursor()
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(sealed) < macSize {
		return nil, UnknownCursor()
	}
	content := sealed[macSize:]
	if !hmac.Equal(sealed[:macSize], s.macOf(content)) {
		return nil, UnknownCursor()
	}
	return content, nil
}

func (s *Sealer) macOf(content []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	_, _ = h.Write([]byte("tollgate page cursor\x00")) // a hash never fails to write
	_, _ = h.Write(content)                            // likewise
	return h.Sum(nil)[:macSize]
}

// UnknownCursor returns fault.Invalid for a cursor that this registry did not make. Callers of Open
// also return it for content that they cannot read.
func UnknownCursor() error {
	return fault.New(fault.Invalid, "cursor was not returned by this registry, or was changed")
}

// Bounds of a page (contract R-12).
const (
	MaxLimit     = 100
	DefaultLimit = 30
)

// ParseLimit returns the number of records of a page: DefaultLimit for the empty text. It returns
// fault.Invalid for anything else that is not a whole number from 1 to MaxLimit.
func ParseLimit(s string) (int, error) {
	if s == "" {
		return DefaultLimit, nil
	}
	limit, err := strconv.Atoi(s)
	if err != nil || limit < 1 || limit > MaxLimit {
		return 0, fault.Newf(fault.Invalid, "limit must be a whole number from 1 to %d", MaxLimit)
	}
	return limit, nil
}
