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

// Headers of every response: which request header the body depends on, and that caches may store
// the response but must ask each time whether it is current.
const (
	vary         = fiber.HeaderAcceptEncoding
	cacheControl = "no-cache"
)

// Sender sends bodies and counts the memory of the large ones. It is safe for concurrent use.
type Sender struct{ memory *semaphore.Weighted }

// New returns a sender. All users of one sender share the memory for large bodies.
func New(cfg Config) *Sender {
	if cfg.InFlight == 0 {
		cfg.InFlight = math.MaxInt
	}
	return &Sender{semaphore.NewWeighted(int64(cfg.InFlight))}
}

// Negotiate is a middleware for reads. It adds an entity tag to a response of 200, and compresses
// it or turns it into 304 where the request allows. The response to HEAD has the headers of GET. It
// returns fault.Unavailable if there is not enough memory for a large response.
func (s *Sender) Negotiate(c *fiber.Ctx) error {
	if err := c.Next(); err != nil {
		return err
	}
	response := c.Response()
	if response.StatusCode() != http.StatusOK || response.IsBodyStream() {
		return nil
	}
	body := response.SwapBody(nil)
	reserved, err := s.reserve(len(body))
	if err != nil {
		return err
	}
	compress := isCompressible(len(body)) && acceptsGzip(c)
	tag := appendBodyTag(make([]byte, 0, tagSize), body, compress)
	switch {
	case setHeaders(c, tag):
		body = body[:0]
	case compress:
		body = compressBody(body)
	}
	reserved.shrink(len(body))
	if reserved == nil || len(body) == 0 {
		response.SwapBody(body)
	} else {
		response.SetBodyStream(&bodyReader{next: singlePiece(body), reserved: reserved}, len(body))
	}
	return nil
}

func isCompressible(size int) bool { return size > MinSize }

// setHeaders sets the headers of a body with the entity tag. It reports whether the client has this
// body already; then it makes the response a 304, which the caller must leave without a body.
func setHeaders(c *fiber.Ctx, tag []byte) (notModified bool) {
	header := &c.Response().Header
	header.SetBytesV(fiber.HeaderETag, tag)
	header.Set(fiber.HeaderVary, vary)
	header.Set(fiber.HeaderCacheControl, cacheControl)
	if listsTag(c.Request().Header.PeekAll(fiber.HeaderIfNoneMatch), tag, weakComparison) {
		c.Status(http.StatusNotModified)
		header.Del(fiber.HeaderContentType)
		return true
	}
	if isGzipTag(tag) {
		header.SetContentEncoding(codingGzip)
	}
	return false
}

// separateSize is the size in bytes from which a body and its compressed form do not share a
// buffer.
const separateSize = 1 << 20

// compressBody returns the compressed form of a body. fasthttp runs as many compressions at once as
// there are cores. A small body is compressed into the rest of its own buffer, which the server
// reuses, and the result is moved to the front. A large body gets a new buffer, because growing its
// own would copy it.
func compressBody(body []byte) []byte {
	size := len(body)
	if size >= separateSize {
		return fasthttp.AppendGzipBytesLevel(make([]byte, 0, size/8), body, fasthttp.CompressBestSpeed)
	}
	all := fasthttp.AppendGzipBytesLevel(slices.Grow(body, size/2), body, fasthttp.CompressBestSpeed)
	return all[:copy(all, all[size:])]
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
			fasthttp.AppendGzipBytesLevel(nil, body, fasthttp.CompressDefaultCompression), appendBodyTag(nil, body, true),
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
	if !setHeaders(c, chosen.tag) {
		c.Response().SetBodyRaw(chosen.body)
	}
	return nil
}
