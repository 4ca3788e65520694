package httpconn

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/core/requestid"
)

// RequestID returns the request id that the client sent, if it is valid, else a random one.
func RequestID(sent string) string {
	if requestid.Valid(sent) {
		return sent
	}
	return string(appendRandomID(nil))
}

// appendRandomID appends a random id. An id is no secret, so the faster generator is enough.
func appendRandomID(dst []byte) []byte {
	var random [12]byte
	binary.NativeEndian.PutUint64(random[:], rand.Uint64())
	binary.NativeEndian.PutUint32(random[8:], rand.Uint32())
	return requestid.Append(dst, random)
}

var requestIDName = []byte(requestid.Header) // the canonical form

// SetRequestID sets the id of a request in its response, where RequestIDOf finds it: the id that the
// client sent, if it is valid, else a random one.
func SetRequestID(c *fasthttp.RequestCtx) {
	var room [24]byte
	id := c.Request.Header.Peek(requestid.Header)
	if !requestid.Valid(string(id)) {
		id = appendRandomID(room[:0])
	}
	c.Response.Header.SetCanonical(requestIDName, id)
}

// RequestIDOf returns the id of a request, or "" before SetRequestID.
func RequestIDOf(c *fasthttp.RequestCtx) string {
	return string(c.Response.Header.Peek(requestid.Header))
}
