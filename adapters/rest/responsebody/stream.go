package responsebody

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/gofiber/fiber/v2"
	"github.com/klauspost/compress/gzip"
)

// Stream is a body that is made in pieces while the client receives it, because it is too large to
// be held in memory.
type Stream struct {
	Hash uint64                 // of everything that determines the bytes of the body
	Size int                    // of the body in bytes
	Next func() ([]byte, error) // returns the next piece, which is valid until the next call; io.EOF after the last
}

// streamSize is the memory that a stream uses: a piece of 1 MiB with one document of the greatest
// size, its compressed form, and the state of the compression.
const streamSize = 5 << 20

// Stream sends a stream as the response to a read. An error of Next closes the connection before
// the end of the body, so that the client notices that the body is incomplete. Stream returns
// fault.Unavailable if there is not enough memory.
func (s *Sender) Stream(c *fiber.Ctx, body Stream) error {
	reserved, err := s.reserve(streamSize)
	if err != nil {
		return err
	}
	// The length of the compressed form is unknown before its end, so it is sent in chunks, which
	// HTTP/1.0 does not have (RFC 9112, 7.1).
	compress := acceptsGzip(c) && c.Request().Header.IsHTTP11()
	tag := appendTag(make([]byte, 0, tagSize), body.Hash, compress)
	known := isKnown(c, tag)
	setHeaders(c, tag, Usual, known)
	if known {
		reserved.Release()
		return nil
	}
	reader, size := &bodyReader{next: body.Next, reserved: reserved}, body.Size
	if compress {
		reader.next, size = compressPieces(body.Next), -1
		if c.Method() == fiber.MethodHead {
			c.Context().SetConnectionClose() // the server writes the end of chunks that it has not written
		}
	}
	c.Response().SetBodyStream(reader, size)
	return nil
}

// ReserveStream reserves memory for one stream before it is known whether the response will be
// sent. It returns fault.Unavailable if there is not enough.
func (s *Sender) ReserveStream() (*Reservation, error) { return s.reserve(streamSize) }

// Send sends a stream as the response to a write. Unlike [Sender.Stream] it sets no entity tag and
// does not compress, because the body is not a representation of the target. It releases the memory
// after the body was sent; the caller must not.
func (r *Reservation) Send(c *fiber.Ctx, body Stream) {
	c.Response().SetBodyStream(&bodyReader{next: body.Next, reserved: r}, body.Size)
}

// compressPieces returns a function that returns the compressed form in pieces.
func compressPieces(next func() ([]byte, error)) func() ([]byte, error) {
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

// bodyReader is a body in the form that the server reads: by WriteTo, which does not copy, or by
// Read.
type bodyReader struct {
	next     func() ([]byte, error)
	rest     []byte // of the current piece
	reserved *Reservation
}

func (r *bodyReader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		var err error
		if r.rest, err = r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *bodyReader) WriteTo(w io.Writer) (n int64, err error) {
	for {
		for len(r.rest) > 0 {
			written, err := w.Write(r.rest)
			n, r.rest = n+int64(written), r.rest[written:]
			if err != nil {
				return n, fmt.Errorf("send a part of the response body: %w", err)
			}
		}
		if r.rest, err = r.next(); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return n, err
		}
	}
}

// Close releases the memory of the body. The server calls it whether or not the body was sent.
func (r *bodyReader) Close() error {
	r.reserved.Release()
	return nil
}

// singlePiece returns a function that returns the body once.
func singlePiece(body []byte) func() ([]byte, error) {
	return func() ([]byte, error) {
		if body == nil {
			return nil, io.EOF
		}
		piece := body
		body = nil
		return piece, nil
	}
}
