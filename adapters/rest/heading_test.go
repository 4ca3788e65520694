package rest

import (
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
)

// Clients that go away in the middle of their body must not fill the memory: nobody tells of them.
func TestHeadingsOfAbandonedRequestsAreDropped(t *testing.T) {
	clk := clocktest.NewManual(time.Unix(1_800_000_000, 0))
	h := &headings{clock: clk, life: time.Minute}
	arrive := func() *fasthttp.RequestHeader {
		header := &fasthttp.RequestHeader{}
		header.SetMethod("POST")
		header.SetRequestURI("/auth/login")
		h.keep(header)
		return header
	}
	held := func() (n int) {
		h.kept.Range(func(any, any) bool { n++; return true })
		return n
	}
	for range 10 {
		arrive()
	}
	clk.Advance(time.Minute)
	young := arrive()
	if n := held(); n != 11 {
		t.Errorf("%d headers held, want all 11 while their bodies may still arrive", n)
	}
	clk.Advance(time.Second)
	arrive()
	if n := held(); n != 2 {
		t.Errorf("%d headers held, want the 2 whose bodies may still arrive", n)
	}
	young.Reset()
	if h.restore(young); string(young.RequestURI()) != "/auth/login" {
		t.Errorf("restored %q", young.RequestURI())
	}
	if n := held(); n != 1 {
		t.Errorf("%d headers held after one was restored, want 1", n)
	}
}
