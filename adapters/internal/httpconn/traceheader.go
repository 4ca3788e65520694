package httpconn

import (
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/propagation"
)

var _ propagation.ValuesGetter = TraceCarrier{}

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
