package httpconn

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/tollgate-dev/tollgate/core/requestid"
)

// RequestID returns the request id that the client sent, if it is valid, else a random one. An id
// is no secret, so the faster generator is enough.
func RequestID(sent string) string {
	if requestid.Valid(sent) {
		return sent
	}
	var random [12]byte
	binary.NativeEndian.PutUint64(random[:], rand.Uint64())
	binary.NativeEndian.PutUint32(random[8:], rand.Uint32())
	return requestid.Of(random)
}
