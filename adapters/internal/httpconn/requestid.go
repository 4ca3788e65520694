package httpconn

import (
	"crypto/rand"

	"github.com/tollgate-dev/tollgate/core/requestid"
)

// RequestID returns the request id that the client sent, if it is valid, else a random one.
func RequestID(sent string) string {
	if requestid.Valid(sent) {
		return sent
	}
	var random [12]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return requestid.Of(random)
}
