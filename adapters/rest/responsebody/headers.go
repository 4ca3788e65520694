package responsebody

import (
	"slices"

	"github.com/gofiber/fiber/v2"
)

// Headers are response headers whose values never change. Setting them costs half of what it costs
// with the methods of Fiber, which normalize the names each time.
type Headers []header

type header struct{ name, value []byte }

// NewHeaders returns headers from names, in their canonical form, and values in turn.
func NewHeaders(pairs ...string) Headers {
	return Headers(nil).With(pairs...)
}

// With returns the headers with others, which replace those with the same names.
func (h Headers) With(pairs ...string) Headers {
	all := append(make(Headers, 0, len(h)+len(pairs)/2), h...)
	for i := 0; i+1 < len(pairs); i += 2 {
		name, value := pairs[i], []byte(pairs[i+1])
		at := slices.IndexFunc(all, func(known header) bool { return string(known.name) == name })
		if at < 0 {
			all = append(all, header{[]byte(name), value})
		} else {
			all[at].value = value
		}
	}
	return all
}

// Set sets the headers of the response.
func (h Headers) Set(c *fiber.Ctx) {
	response := &c.Response().Header
	for i := range h {
		response.SetCanonical(h[i].name, h[i].value)
	}
}
