package httpconn

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc/metadata"

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

var _, _ propagation.ValuesGetter = TraceCarrier{}, MetadataCarrier{}

// TraceCarrier lets a propagator read the trace of a request from its header. It returns copies,
// because the server reuses the memory of a request.
type TraceCarrier struct{ header *fasthttp.RequestHeader }

// NewTraceCarrier returns the carrier of a request header.
func NewTraceCarrier(h *fasthttp.RequestHeader) TraceCarrier { return TraceCarrier{h} }

// Get returns the value of a field; of several, the first.
func (c TraceCarrier) Get(key string) string { return string(c.header.Peek(key)) }

// Values returns the values of a field.
func (c TraceCarrier) Values(key string) []string {
	var values []string
	for _, v := range c.header.PeekAll(key) {
		values = append(values, string(v))
	}
	return values
}

// Set sets a field.
func (c TraceCarrier) Set(key, value string) { c.header.Set(key, value) }

// Keys returns the names of all fields.
func (c TraceCarrier) Keys() []string {
	var keys []string
	c.header.VisitAll(func(key, _ []byte) { keys = append(keys, string(key)) })
	return keys
}

// MetadataCarrier lets a propagator read and write gRPC metadata, whose keys are in lower case.
type MetadataCarrier metadata.MD

// Get returns the value of a key; of several, the first.
func (m MetadataCarrier) Get(key string) string {
	if v := m.Values(key); len(v) > 0 {
		return v[0]
	}
	return ""
}

// Values returns the values of a key.
func (m MetadataCarrier) Values(key string) []string { return m[strings.ToLower(key)] }

// Set sets a key.
func (m MetadataCarrier) Set(key, value string) { metadata.MD(m).Set(key, value) }

// Keys returns all keys.
func (m MetadataCarrier) Keys() []string { return slices.Collect(maps.Keys(m)) }
