package memcached_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestRepliesWithoutACount requires that an addition fails whose reply has no number, and that a
// counter which is read or given back may be missing.
func TestRepliesWithoutACount(t *testing.T) {
	var reply atomic.Pointer[string]
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = l.Close() }) // an error has no effect on the test
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answer(c, &reply)
		}
	}()
	c := openClient(t, newConfig(l.Addr().String()))
	await.Until(t, "a connection", c.Connected)
	for _, text := range []string{"NS", "NF", "EX", "EN", "HD", "MN", "VA 2\r\n-5"} {
		reply.Store(&text)
		for _, addend := range []int64{1, 0, -1} {
			h, after := newMinuteHit("k"), make([]counter.Result, 1)
			h.Addend = addend
			err := c.Count(t.Context(), []counter.Hit{h}, after, counter.Each)
			if missing := text == "NF" || text == "EN"; missing && addend <= 0 {
				if err != nil || after[0].Count != 0 {
					t.Errorf("%q to %d hits: %d, %v, want 0", text, addend, after[0].Count, err)
				}
			} else if !fault.Is(err, fault.Unavailable) {
				t.Errorf("%q to %d hits: %d, %v, want fault.Unavailable", text, addend, after[0].Count, err)
			}
		}
	}
}

// answer answers pings, and all other commands with reply.
func answer(c net.Conn, reply *atomic.Pointer[string]) {
	defer func() { _ = c.Close() }() // the client notices it
	for lines := bufio.NewScanner(c); lines.Scan(); {
		text := "MN"
		if !strings.HasPrefix(lines.Text(), "mn") {
			text = *reply.Load()
		}
		if _, err := io.WriteString(c, text+"\r\n"); err != nil {
			return
		}
	}
}
