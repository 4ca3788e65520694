package rest

import (
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
)

// TestExpiredHeadersAreRemoved abandons requests during their bodies. The server does not report
// them, and their headers must not fill the memory.
func TestExpiredHeadersAreRemoved(t *testing.T) {
	clk := clocktest.NewManual(time.Unix(1_800_000_000, 0))
	h := &headerStore{clock: clk, maxAge: time.Minute}
	receiveHeader := func() *fasthttp.RequestHeader {
		header := &fasthttp.RequestHeader{}
		header.SetMethod("POST")
		header.SetRequestURI("/auth/login")
		h.store(header)
		return header
	}
	countStored := func() (n int) {
		h.stored.Range(func(any, any) bool { n++; return true })
		return n
	}
	for range 10 {
		receiveHeader()
	}
	clk.Advance(time.Minute)
	young := receiveHeader()
	if n := countStored(); n != 11 {
		t.Errorf("%d headers are stored, want all 11, because their bodies may still arrive", n)
	}
	clk.Advance(time.Second)
	receiveHeader()
	if n := countStored(); n != 2 {
		t.Errorf("%d headers are stored, want the 2 whose bodies may still arrive", n)
	}
	young.Reset()
	if h.restore(young); string(young.RequestURI()) != "/auth/login" {
		t.Errorf("restored %q", young.RequestURI())
	}
	if n := countStored(); n != 1 {
		t.Errorf("%d headers are stored after one was restored, want 1", n)
	}
}
