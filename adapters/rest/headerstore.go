package rest

import (
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/ports/clock"
)

// headerStore stores copies of the headers of requests whose bodies are still arriving. The server
// resets a header when reading the body fails, but the error response depends on the path: the part
// that owns it writes the response.
//
// The server does not report clients that disconnect while they send a body. Their headers are
// removed after maxAge.
type headerStore struct {
	clock  clock.Clock
	maxAge time.Duration // longer than the read timeout; 0 without a timeout
	stored sync.Map      // *fasthttp.RequestHeader of the server to *storedHeader

	mu      sync.Mutex
	sweptAt time.Time
}

// storedHeader is a copy of a header.
type storedHeader struct {
	header   fasthttp.RequestHeader
	storedAt time.Time
}

// store stores a copy of the header of a request that may have a body.
func (h *headerStore) store(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if !header.IsGet() && !header.IsHead() {
		entry := &storedHeader{storedAt: h.clock.Now()}
		header.CopyTo(&entry.header)
		h.stored.Store(header, entry)
		h.removeExpired(entry.storedAt)
	}
	return fasthttp.RequestConfig{}
}

// remove removes the copy of a header whose body has arrived.
func (h *headerStore) remove(header *fasthttp.RequestHeader) {
	if !header.IsGet() && !header.IsHead() {
		h.stored.Delete(header)
	}
}

// restore restores a header that the server has reset, and removes the copy.
func (h *headerStore) restore(header *fasthttp.RequestHeader) {
	value, _ := h.stored.LoadAndDelete(header)
	if entry, ok := value.(*storedHeader); ok {
		entry.header.CopyTo(header)
	}
}

// removeExpired removes headers that are older than maxAge. It does so once per maxAge.
func (h *headerStore) removeExpired(now time.Time) {
	if !h.isSweepDue(now) {
		return
	}
	h.stored.Range(func(header, value any) bool {
		if entry, ok := value.(*storedHeader); ok && now.Sub(entry.storedAt) > h.maxAge {
			h.stored.CompareAndDelete(header, value) // the server may have reused the header for another request
		}
		return true
	})
}

func (h *headerStore) isSweepDue(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.maxAge == 0 || now.Sub(h.sweptAt) <= h.maxAge {
		return false
	}
	h.sweptAt = now
	return true
}
