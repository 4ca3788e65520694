// Package representation sends an answer to a read in the form that its caller
// can use: not at all where the caller has it already, and compressed where
// that is worth it (RFC 9110, 8.8.3, 12.5.3 and 13.1.2). It bounds what large
// answers take of the memory until slow callers have taken them. It knows
// nothing of what the answers say, and it touches no failures.
package representation

import (
	"math"
	"net/http"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/semaphore"
)

// MinSize is the size in bytes from which on answers are compressed. Shorter
// ones take about one packet either way.
const MinSize = 2 << 10

// What decides over the answer's form, and what caches do with it: they may
// keep it, and ask each time whether it is still the one.
const (
	vary         = fiber.HeaderAcceptEncoding
	cacheControl = "no-cache"
)

// Forms gives answers their form, and counts the large ones. It is safe for
// concurrent use.
type Forms struct{ memory *semaphore.Weighted }

// New returns the forms of a service, which share one memory.
func New(cfg Config) *Forms {
	if cfg.InFlight == 0 {
		cfg.InFlight = math.MaxInt
	}
	return &Forms{semaphore.NewWeighted(int64(cfg.InFlight))}
}

// Negotiate is for before the handlers of a read. It gives an answer of 200 its
// validator and turns it into 304 where the caller has it, or compresses it.
// HEAD gets the headers of GET. A large answer beyond what may be in flight is
// fault.Unavailable.
func (f *Forms) Negotiate(c *fiber.Ctx) error {
	if err := c.Next(); err != nil {
		return err
	}
	response := c.Response()
	if response.StatusCode() != http.StatusOK || response.IsBodyStream() {
		return nil
	}
	body := response.SwapBody(nil)
	held, err := f.hold(len(body))
	if err != nil {
		return err
	}
	compress := worthCompressing(len(body)) && acceptsGzip(c)
	tag := appendTag(make([]byte, 0, tagSize), body, compress)
	switch {
	case notModified(c, tag):
		body = body[:0]
	case compress:
		body = compressed(body)
	}
	held.keep(len(body))
	if held == nil || len(body) == 0 {
		response.SwapBody(body)
	} else {
		response.SetBodyStream(&pieces{next: once(body), held: held}, len(body))
	}
	return nil
}

func worthCompressing(size int) bool { return size > MinSize }

// notModified sets the headers of an answer by its validator, and reports whether
// the caller has it already; then nothing is left of it.
func notModified(c *fiber.Ctx, tag []byte) bool {
	header := &c.Response().Header
	header.SetBytesV(fiber.HeaderETag, tag)
	header.Set(fiber.HeaderVary, vary)
	header.Set(fiber.HeaderCacheControl, cacheControl)
	if matches(c.Request().Header.PeekAll(fiber.HeaderIfNoneMatch), tag) {
		c.Status(http.StatusNotModified)
		header.Del(fiber.HeaderContentType)
		return true
	}
	if isGzip(tag) {
		header.SetContentEncoding(codingGzip)
	}
	return false
}

// largeBody is the size in bytes from which on a body and its compressed form do not share a buffer.
const largeBody = 1 << 20

// compressed returns a body in its compressed form. The work is done by as many workers as there are cores. Where the body is
// small its buffer, which is used again and again, takes both: the form is written behind it and moved to the front. A large one
// would have to be moved to a larger buffer for that, and so be held twice.
func compressed(body []byte) []byte {
	size := len(body)
	if size >= largeBody {
		return fasthttp.AppendGzipBytesLevel(make([]byte, 0, size/8), body, fasthttp.CompressBestSpeed)
	}
	all := fasthttp.AppendGzipBytesLevel(slices.Grow(body, size/2), body, fasthttp.CompressBestSpeed)
	return all[:copy(all, all[size:])]
}

// Fixed is an answer that is always the same, ready to be sent.
type Fixed struct {
	contentType string
	plain, gzip form
}

type form struct{ body, tag []byte }

// NewFixed returns an answer of 200 with the content type and body given, which
// must not change afterwards.
func NewFixed(contentType string, body []byte) *Fixed {
	f := &Fixed{contentType: contentType, plain: form{body, appendTag(nil, body, false)}}
	f.gzip = f.plain
	if worthCompressing(len(body)) {
		f.gzip = form{
			fasthttp.AppendGzipBytesLevel(nil, body, fasthttp.CompressDefaultCompression), appendTag(nil, body, true),
		}
	}
	return f
}

// Send answers a read.
func (f *Fixed) Send(c *fiber.Ctx) error {
	chosen := &f.plain
	if acceptsGzip(c) {
		chosen = &f.gzip
	}
	c.Set(fiber.HeaderContentType, f.contentType)
	if !notModified(c, chosen.tag) {
		c.Response().SetBodyRaw(chosen.body)
	}
	return nil
}
