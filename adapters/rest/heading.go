package rest

import (
	"sync"

	"github.com/valyala/fasthttp"
)

// headings keeps the headers of requests whose bodies are still arriving. The
// server forgets a header when its body fails, and the failure is to be
// answered by the part that the path belongs to.
type headings struct {
	kept sync.Map // *fasthttp.RequestHeader, the server's own, to its copy
}

// keep copies the header of a request that may have a body.
func (h *headings) keep(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if !header.IsGet() && !header.IsHead() {
		kept := &fasthttp.RequestHeader{}
		header.CopyTo(kept)
		h.kept.Store(header, kept)
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
		if copied, ok := kept.(*fasthttp.RequestHeader); ok {
			copied.CopyTo(header)
		}
	}
}
