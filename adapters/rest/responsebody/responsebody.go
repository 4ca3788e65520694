// Package responsebody sends the bodies of responses to reads: with an entity tag, not at all if
// the client has the current one, and compressed if the client accepts that (RFC 9110, 8.8.3,
// 12.5.3 and 13.1.2). It bounds the memory that large bodies use until slow clients have received
// them. It does not depend on the content of bodies, and it leaves error responses unchanged.
package responsebody

import (
	"math"
	"net/http"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/semaphore"
)

// MinSize is the size in bytes up to which bodies are not compressed. They fit into about one
// packet either way.
const MinSize = 2 << 10

var etagName = []byte("Etag") // the canonical form

// Usual are the headers of a response that has no others: which request header the body depends on,
// and that caches may store the response but must ask each time whether it is current.
var Usual = NewHeaders(fiber.HeaderVary, fiber.HeaderAcceptEncoding, fiber.HeaderCacheControl, "no-cache")

// Sender sends bodies and counts the memory of the large ones. It is safe for concurrent use.
type Sender struct{ memory *semaphore.Weighted }

// New returns a sender. All users of one sender share the memory for large bodies.
func New(cfg Config) *Sender {
	if cfg.InFlight == 0 {
		cfg.InFlight = math.MaxInt
	}
	return &Sender{semaphore.NewWeighted(int64(cfg.InFlight))}
}

func isCompressible(size int) bool { return size > MinSize }

// isKnown reports whether the client has the body with the entity tag already.
func isKnown(c *fiber.Ctx, tag []byte) bool {
	return listsTag(c.Request().Header.PeekAll(fiber.HeaderIfNoneMatch), tag, weakComparison)
}

// setHeaders sets the headers of a body with the entity tag. If the client knows the body, the
// response is a 304, which the caller must leave without a body.
func setHeaders(c *fiber.Ctx, tag []byte, h Headers, known bool) {
	header := &c.Response().Header
	header.SetCanonical(etagName, tag)
	h.Set(c)
	if known {
		c.Status(http.StatusNotModified)
		header.Del(fiber.HeaderContentType)
	} else if isGzipTag(tag) {
		header.SetContentEncoding(codingGzip)
	}
}

// Fixed is a response body that never changes. It is compressed once.
type Fixed struct {
	contentType string
	plain, gzip encodedBody
}

type encodedBody struct{ body, tag []byte }

// NewFixed returns a body with its content type. The caller must not change the body afterwards.
func NewFixed(contentType string, body []byte) *Fixed {
	f := &Fixed{contentType: contentType, plain: encodedBody{body, appendBodyTag(nil, body, false)}}
	f.gzip = f.plain
	if isCompressible(len(body)) {
		f.gzip = encodedBody{
			fasthttp.AppendGzipBytesLevel(nil, body, fasthttp.CompressDefaultCompression),
			appendBodyTag(nil, body, true),
		}
	}
	return f
}

// Send sends the body as the response to a read.
func (f *Fixed) Send(c *fiber.Ctx) error {
	chosen := &f.plain
	if acceptsGzip(c) {
		chosen = &f.gzip
	}
	c.Set(fiber.HeaderContentType, f.contentType)
	known := isKnown(c, chosen.tag)
	setHeaders(c, chosen.tag, Usual, known)
	if !known {
		c.Response().SetBodyRaw(chosen.body)
	}
	return nil
}

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
