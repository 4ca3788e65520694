// Package traceheader lets a propagator read from the header of a request which trace it belongs to. What of it is believed, and
// what is told in a span, is the listener's business.
package traceheader

import (
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/propagation"
)

var _ propagation.ValuesGetter = Carrier{}

// Carrier is a header as a propagator reads it. It copies what it gives away: the memory of a request is used again.
type Carrier struct{ header *fasthttp.RequestHeader }

// Of returns the carrier of a request's header.
func Of(h *fasthttp.RequestHeader) Carrier { return Carrier{h} }

// Get returns the value of a field; of several, the first.
func (c Carrier) Get(key string) string { return string(c.header.Peek(key)) }

// Values returns the values of a field.
func (c Carrier) Values(key string) []string {
	var values []string
	for _, v := range c.header.PeekAll(key) {
		values = append(values, string(v))
	}
	return values
}

// Set sets a field.
func (c Carrier) Set(key, value string) { c.header.Set(key, value) }

// Keys returns the names of all fields.
func (c Carrier) Keys() []string {
	var keys []string
	c.header.VisitAll(func(key, _ []byte) { keys = append(keys, string(key)) })
	return keys
}
