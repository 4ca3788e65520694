package representation

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/gofiber/fiber/v2"
	"github.com/klauspost/compress/gzip"
)

// Stream is a body that is too large to be held, and so is made piece by piece
// while the client takes it.
type Stream struct {
	Sum  uint64                 // a hash of all that decides over the body's bytes
	Size int                    // of the body in bytes
	Next func() ([]byte, error) // a piece, good until the next call; io.EOF behind the last
}

// streamSize is what a stream takes of the memory for large answers: a piece of
// 1 MiB with one document of the greatest size, its compressed form, and what
// the compression itself needs.
const streamSize = 5 << 20

// Stream answers a read with a body that is made while it is sent. It is for
// handlers behind Negotiate, which leaves its answer alone. A failure of Next
// ends the connection before the end of the body, so that the caller sees that
// something is missing. fault.Unavailable when too many large answers are being
// sent.
func (f *Forms) Stream(c *fiber.Ctx, s Stream) error {
	held, err := f.hold(streamSize)
	if err != nil {
		return err
	}
	// How long the compressed form is, nobody knows before its end, and HTTP/1.0
	// has no chunks to tell it (RFC 9112, 7.1).
	compress := acceptsGzip(c) && c.Request().Header.IsHTTP11()
	if notModified(c, appendSum(make([]byte, 0, tagSize), s.Sum, compress)) {
		held.keep(0)
		return nil
	}
	body, size := &pieces{next: s.Next, held: held}, s.Size
	if compress {
		body.next, size = compressedPieces(s.Next), -1
		if c.Method() == fiber.MethodHead {
			c.Context().SetConnectionClose() // the server ends the chunks that it does not send
		}
	}
	c.Response().SetBodyStream(body, size)
	return nil
}

// Room is memory for one stream, taken before it is known whether the answer
// will be sent. nil is none. It is for one goroutine at a time.
type Room struct{ held *hold }

// Room takes memory for a stream. fault.Unavailable when too many large answers
// are being sent.
func (f *Forms) Room() (*Room, error) {
	held, err := f.hold(streamSize)
	if err != nil {
		return nil, err
	}
	return &Room{held}, nil
}

// Release gives back what was taken, unless Send has done so.
func (r *Room) Release() {
	if r != nil {
		r.held.keep(0)
	}
}

// Send answers a write with a body that is made while it is sent, as Stream
// does, but without a tag and a coding: the body is no representation of the
// target. The room is released when the body was sent.
func (r *Room) Send(c *fiber.Ctx, s Stream) {
	c.Response().SetBodyStream(&pieces{next: s.Next, held: r.held}, s.Size)
}

// compressedPieces returns the pieces of the compressed form.
func compressedPieces(next func() ([]byte, error)) func() ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	ended := false
	return func() ([]byte, error) {
		for out.Reset(); err == nil && out.Len() == 0; {
			if ended {
				return nil, io.EOF
			}
			var piece []byte
			if piece, err = next(); errors.Is(err, io.EOF) {
				ended, err = true, w.Close()
			} else if err == nil {
				_, err = w.Write(piece)
			}
		}
		return out.Bytes(), err
	}
}

// pieces is a body as the server reads it: by WriteTo, which hands it on
// without a copy, or by Read.
type pieces struct {
	next func() ([]byte, error)
	rest []byte // of the piece that is being read
	held *hold
}

// Read reads of one piece.
func (p *pieces) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		var err error
		if p.rest, err = p.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// WriteTo writes what is left.
func (p *pieces) WriteTo(w io.Writer) (n int64, err error) {
	for {
		for len(p.rest) > 0 {
			written, err := w.Write(p.rest)
			n, p.rest = n+int64(written), p.rest[written:]
			if err != nil {
				return n, fmt.Errorf("send a piece of the answer: %w", err)
			}
		}
		if p.rest, err = p.next(); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return n, err
		}
	}
}

// Close gives back what the answer has taken. The server calls it whether or not
// the answer was sent.
func (p *pieces) Close() error {
	p.held.keep(0)
	return nil
}

// once returns the pieces of a body that is there already.
func once(body []byte) func() ([]byte, error) {
	return func() ([]byte, error) {
		if body == nil {
			return nil, io.EOF
		}
		piece := body
		body = nil
		return piece, nil
	}
}
