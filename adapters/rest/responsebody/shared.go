package responsebody

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/adapters/internal/packed"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Shared is a response body that many responses share and that never changes. It is compressed when
// the first client accepts that. It is safe for concurrent use.
type Shared struct {
	contentType string
	headers     Headers
	plain       encodedBody
	pack        *packed.Pack // in place of plain: it is unpacked for each response
	compressing sync.Once
	gzip        encodedBody

	mu       sync.Mutex
	senders  int          // responses in flight
	reserved *Reservation // memory of the body while there are responses in flight
}

// NewShared returns a body with its content type. headers are the names of more headers, in their
// canonical form, each followed by its value; they replace those of Usual. The caller must not
// change the body afterwards.
func NewShared(contentType string, body []byte, headers ...string) *Shared {
	return &Shared{
		contentType: contentType, headers: Usual.With(headers...), plain: encodedBody{body, appendBodyTag(nil, body, false)},
	}
}

// NewPacked returns a body that is kept compressed, because it may be large. The other parameters
// are those of NewShared.
func NewPacked(contentType string, pack *packed.Pack, headers ...string) (*Shared, error) {
	if pack.Size() >= largeSize {
		return &Shared{contentType: contentType, headers: Usual.With(headers...), pack: pack}, nil
	}
	body, err := io.ReadAll(pack.NewReader())
	if err != nil {
		return nil, fmt.Errorf("unpack a response body: %w", err)
	}
	return NewShared(contentType, body, headers...), nil
}

// Size returns the memory of the body in bytes.
func (b *Shared) Size() int {
	if b.pack != nil {
		return b.pack.Kept()
	}
	return len(b.plain.body)
}

// Bytes returns the body, nil if it is packed. The caller must not change it.
func (b *Shared) Bytes() []byte { return b.plain.body }

// Header returns the value of a header of the responses; empty if they do not have it. The name is in
// its canonical form.
func (b *Shared) Header(name string) string {
	for _, h := range b.headers {
		if string(h.name) == name {
			return string(h.value)
		}
	}
	return ""
}

// compressed returns the compressed form.
func (b *Shared) compressed() *encodedBody {
	b.compressing.Do(func() {
		size := len(b.plain.body)
		b.gzip.body = fasthttp.AppendGzipBytesLevel(make([]byte, 0, size/8), b.plain.body, fasthttp.CompressBestSpeed)
		b.gzip.tag = appendBodyTag(nil, b.plain.body, true)
	})
	return &b.gzip
}

// Send sends a shared body as the response to a read. It returns fault.Unavailable if there is not
// enough memory for a large response: the body may have to be held for slow clients after nothing
// else uses it. Responses that share a body count once.
func (s *Sender) Send(c *fiber.Ctx, b *Shared) error {
	if b.pack != nil {
		return s.sendPacked(c, b)
	}
	chosen := &b.plain
	if isCompressible(len(b.plain.body)) && acceptsGzip(c) {
		chosen = b.compressed()
	}
	known := isKnown(c, chosen.tag)
	switch {
	case known:
	case len(b.plain.body) < largeSize:
		c.Response().SetBodyRaw(chosen.body)
	default:
		if err := b.acquire(s, len(chosen.body)); err != nil {
			return err
		}
		c.Response().SetBodyStream(&sharedReader{bodyReader{next: singlePiece(chosen.body)}, b}, len(chosen.body))
	}
	c.Response().Header.SetContentType(b.contentType)
	setHeaders(c, chosen.tag, b.headers, known)
	return nil
}

// sendPacked sends a packed body as a stream.
func (s *Sender) sendPacked(c *fiber.Ctx, b *Shared) error {
	in, piece := b.pack.NewReader(), []byte(nil)
	c.Response().Header.SetContentType(b.contentType)
	err := s.Stream(c, Stream{Hash: b.pack.Hash(), Size: b.pack.Size(), Next: func() ([]byte, error) {
		if piece == nil {
			piece = make([]byte, packedPiece)
		}
		n, err := io.ReadFull(in, piece)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		return piece[:n], err
	}})
	if err == nil {
		b.headers.Set(c)
	}
	return err
}

// packedPiece is the size of the pieces in which a packed body is sent.
const packedPiece = 64 << 10

// acquire counts a response of size bytes in flight. The plain form stays in memory with each form.
func (b *Shared) acquire(s *Sender, size int) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.senders == 0 {
		if b.reserved, err = s.reserve(max(len(b.plain.body), size)); err != nil {
			return err
		}
	}
	b.senders++
	return nil
}

// release ends the count of a response in flight.
func (b *Shared) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.senders--; b.senders == 0 {
		b.reserved.Release()
	}
}

// sharedReader is a shared body in the form that the server reads.
type sharedReader struct {
	bodyReader

	shared *Shared // nil after Close
}

// Close implements io.Closer. The server calls it whether or not the body was sent.
func (r *sharedReader) Close() error {
	if r.shared != nil {
		r.shared.release()
		r.shared = nil
	}
	return nil
}

// Config holds the settings of response bodies.
type Config struct {
	// InFlight is the bytes of large responses that may wait in memory for their clients; 0 means no
	// bound, for tests.
	InFlight int
}

// largeSize is the size in bytes from which the memory of a body is counted until the client has
// received it. Smaller bodies are bounded by the number of connections.
const largeSize = 256 << 10

// retryTime is the Retry-After of a response that is refused because the memory is in use. Most
// clients receive a large response in less time.
const retryTime = time.Second

// errMemoryInUse is the cause in the log.
var errMemoryInUse = errors.New("large responses use all of their memory, four times BODIES_IN_FLIGHT")

// Reservation is memory that a large body has reserved. nil is an empty one. It is not safe for
// concurrent use.
type Reservation struct {
	memory *semaphore.Weighted
	size   int
}

// reserve reserves memory for a body of size bytes; a small one needs no reservation. It does not
// wait for memory, because waiting bodies would use memory too. It returns fault.Unavailable if
// there is not enough.
func (s *Sender) reserve(size int) (*Reservation, error) {
	if size < largeSize {
		return nil, nil //nolint:nilnil // nil is an empty reservation
	}
	if !s.memory.TryAcquire(int64(size)) {
		return nil, fault.Wrap(fault.Unavailable, "too many large responses are being sent; try again later",
			errMemoryInUse).
			After(retryTime)
	}
	return &Reservation{s.memory, size}, nil
}

// Release releases the memory.
func (r *Reservation) Release() {
	if r != nil {
		r.memory.Release(int64(r.size))
		r.size = 0
	}
}
