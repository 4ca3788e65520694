// Package requestid defines the ids of requests, which connect an answer with its log lines and its
// trace. An id is not a secret and proves nothing: the caller may choose it.
package requestid

import (
	"context"
	"encoding/hex"
)

// Header is the HTTP header, and in lower case the gRPC metadata, that carries an id.
const Header = "X-Request-Id"

// MaxLength is the greatest length of an id in characters.
const MaxLength = 128

// Valid reports whether an id from a caller is accepted: 1 to MaxLength visible ASCII characters,
// so that it stays one word in a header and in a log line.
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

// Append appends the id for random bytes: 24 hexadecimal characters.
func Append(dst []byte, random [12]byte) []byte { return hex.AppendEncode(dst, random[:]) }

type contextKey struct{}

// NewContext returns a context with the id of a request.
func NewContext(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, contextKey{}, id)
}

// FromContext returns the id of a context, or "" without one.
func FromContext(ctx context.Context) string {
	id, _ := ctx.Value(contextKey{}).(string)
	return id
}
