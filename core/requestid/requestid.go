// Package requestid names a request, so that an answer, the log lines and the
// trace of it are seen to belong together. An id is no secret and proves
// nothing: whoever asks may choose it.
package requestid

import (
	"context"
	"encoding/hex"
)

// Header is the HTTP header, and in lower case the gRPC metadata, that carries
// an id.
const Header = "X-Request-Id"

// MaxLength is the greatest length of an id in characters.
const MaxLength = 128

// Valid tells whether an id that a caller sends is taken: 1 to MaxLength
// visible ASCII characters, so that it stays one word in a header and in a log
// line.
func Valid(id string) bool {
	if id == "" || len(id) > MaxLength {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

// Of returns the id that is made of random bytes, 24 characters long.
func Of(random [12]byte) string { return hex.EncodeToString(random[:]) }

type contextKey struct{}

// NewContext returns a context that carries the id of a request to what is called for it.
func NewContext(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, contextKey{}, id)
}

// FromContext returns the id that a context carries; empty for none.
func FromContext(ctx context.Context) string {
	id, _ := ctx.Value(contextKey{}).(string)
	return id
}
