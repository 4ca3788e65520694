package rest

import (
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/ports/clock"
)

// headings keeps the headers of requests whose bodies are still arriving. The
// server forgets a header when its body fails, and the failure is to be
// answered by the part that the path belongs to.
//
// The server does not tell of a client that goes away in the middle of its
// body. What such clients leave behind is dropped after life.
type headings struct {
	clock clock.Clock
	life  time.Duration // more than the time in which a body must have arrived; 0 where it may take forever
	kept  sync.Map      // *fasthttp.RequestHeader, the server's own, to *heldHeading

	mu      sync.Mutex
	sweptAt time.Time
}

// heldHeading is a copy of a header, and when it was made.
type heldHeading struct {
	header fasthttp.RequestHeader
	at     time.Time
}

// keep copies the header of a request that may have a body.
func (h *headings) keep(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if !header.IsGet() && !header.IsHead() {
		kept := &heldHeading{at: h.clock.Now()}
		header.CopyTo(&kept.header)
		h.kept.Store(header, kept)
		h.sweep(kept.at)
	}
	return fasthttp.RequestConfig{}
}

// forget drops the copy of a header whose body has arrived.
func (h *headings) forget(header *fasthttp.RequestHeader) {
	if !header.IsGet() && !header.IsHead() {
		h.kept.Delete(header)
	}
}

// restore gives a header back what the server forgot of it.
func (h *headings) restore(header *fasthttp.RequestHeader) {
	if kept, ok := h.kept.LoadAndDelete(header); ok {
		if held, ok := kept.(*heldHeading); ok {
			held.header.CopyTo(header)
		}
	}
}

// sweep drops what is older than life, once in a life.
func (h *headings) sweep(now time.Time) {
	if !h.due(now) {
		return
	}
	h.kept.Range(func(header, kept any) bool {
		if held, ok := kept.(*heldHeading); ok && now.Sub(held.at) > h.life {
			h.kept.CompareAndDelete(header, kept) // the server may be using its header for another request by now
		}
		return true
	})
}

func (h *headings) due(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.life == 0 || now.Sub(h.sweptAt) <= h.life {
		return false
	}
	h.sweptAt = now
	return true
}
