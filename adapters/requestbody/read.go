package requestbody

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
)

// Chunked is the length of a body whose header announces no length.
const Chunked = -1

// Errors of Read other than missing memory.
var (
	ErrTooLarge   = errors.New("the body is larger than its bound")
	ErrTimeout    = errors.New("the body did not arrive in time")
	ErrIncomplete = errors.New("the body is malformed or incomplete")
)

// firstSize is the size of the first buffer of a body. Most bodies are smaller. Larger buffers are
// allocated as data arrives, never because a length was announced.
const firstSize = 4 << 10

// Postpone makes a server with StreamRequestBody call its handler as soon as the header of a
// request has arrived: use it as Server.HeaderReceived. The server would otherwise wait for the
// first 8 KiB of a body. It does so for bodies in chunks only, so that is what the header says
// until Read or Skip restores the length.
func Postpone(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if h.ContentLength() > 0 {
		h.SetContentLength(Chunked)
	}
	return fasthttp.RequestConfig{}
}

// Request describes the body of a request.
type Request struct {
	Length int    // what the header announces, or Chunked
	Max    int    // the greatest size
	Client string // who sends it: uses a share of the budget at most; empty for no such bound
}

// Body is a body in memory. It is not safe for concurrent use.
type Body struct {
	reservation
	request Request
	data    []byte
	first   [firstSize]byte // the first buffer
}

// bodies holds bodies that are not used.
var bodies = sync.Pool{New: func() any { return new(Body) }}

func newBody(b *Budget, r Request) *Body {
	body, _ := bodies.Get().(*Body)
	body.reservation, body.request, body.data = reservation{budget: b, client: r.Client}, r, nil
	return body
}

// Release gives the memory of the body back. Neither the body nor its request may be read after it.
// Release of nil does nothing.
func (b *Body) Release() {
	if b == nil {
		return
	}
	b.data = nil
	b.shrink(b.size)
	bodies.Put(b)
}

// Read reads the body of a request, which the handler then finds in the request. The caller must
// release the result, which is nil without a body, when it has handled the request. Read waits
// until the read deadline of the connection. It returns ErrTooLarge, without reading if the
// announced length is too large, ErrTimeout, ErrIncomplete, fault.Unavailable if the budget is used
// up, or fault.Exhausted if the client's share of it is. After an error the response may close the
// connection, so the caller must not reset it.
func (b *Budget) Read(c *fasthttp.RequestCtx, r Request) (*Body, error) {
	if r.Length == 0 {
		return nil, nil //nolint:nilnil // nil is no body
	}
	if r.Length > r.Max {
		Skip(c, r.Length)
		return nil, ErrTooLarge
	}
	restoreLength(c, r.Length)
	body := newBody(b, r)
	if err := body.fill(c.RequestBodyStream()); err != nil {
		if body.data == nil {
			Skip(c, r.Length)
		} else {
			closeAfterResponse(c)
		}
		body.Release()
		return nil, err
	}
	c.Request.SetBodyRaw(body.data)
	return body, nil
}

func restoreLength(c *fasthttp.RequestCtx, length int) {
	if length != Chunked {
		c.Request.Header.SetContentLength(length)
	}
}

// fill reads the whole body.
func (b *Body) fill(stream io.Reader) error {
	if err := b.grow(firstSize, firstSize); err != nil {
		return err
	}
	b.data = b.first[:0]
	for len(b.data) != b.request.Length {
		if len(b.data) == cap(b.data) {
			if err := b.enlarge(); err != nil {
				return err
			}
		}
		room := b.data[len(b.data):cap(b.data)]
		n, err := stream.Read(room)
		b.data = b.data[:len(b.data)+n]
		switch {
		case len(b.data) > b.request.Max:
			return ErrTooLarge
		case len(b.data) == b.request.Length, errors.Is(err, io.EOF) && b.request.Length == Chunked:
			return nil
		case err != nil:
			return classifyError(err)
		}
	}
	return nil
}

// enlarge doubles the buffer, up to the length of the body; one more byte than the bound shows that
// a body in chunks is too large.
func (b *Body) enlarge() error {
	size := min(2*cap(b.data), b.request.Max+1)
	if b.request.Length != Chunked {
		size = min(size, b.request.Length)
	}
	if err := b.grow(size, size); err != nil {
		return err
	}
	larger, old := make([]byte, len(b.data), size), cap(b.data)
	copy(larger, b.data)
	b.data = larger
	b.shrink(old)
	return nil
}

func classifyError(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return ErrTimeout
	}
	return fmt.Errorf("%w: %w", ErrIncomplete, err)
}

// What Skip reads of a body.
const (
	skipBytes = 64 << 10
	skipTime  = 50 * time.Millisecond
)

// Skip ends a request whose body was not read, before its response is sent. The connection can be
// used again if the client has sent the whole body together with the header, as clients do with
// small bodies; else it is closed after the response, which the caller must not reset.
func Skip(c *fasthttp.RequestCtx, length int) {
	if length == 0 {
		return
	}
	restoreLength(c, length)
	if length > skipBytes || !readRest(c) {
		closeAfterResponse(c)
	}
}

func closeAfterResponse(c *fasthttp.RequestCtx) {
	c.SetConnectionClose()
	httpconn.Linger(c.Conn())
}

// readRest reads what has arrived of a body, or arrives at once. It returns false if that is not
// all.
func readRest(c *fasthttp.RequestCtx) bool {
	stream := c.RequestBodyStream()
	if stream == nil || c.Conn().SetReadDeadline(time.Now().Add(skipTime)) != nil {
		return false
	}
	buffer := newBody(nil, Request{})
	defer bodies.Put(buffer)
	for total := 0; total <= skipBytes; {
		n, err := stream.Read(buffer.first[:])
		total += n
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
	return false
}
