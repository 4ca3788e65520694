package httpconn

import (
	"maps"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc/metadata"
)

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
