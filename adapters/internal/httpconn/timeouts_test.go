package httpconn

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/test/must"
)

// timedConn is a connection whose client sends what the test writes, and never receives anything.
type timedConn struct {
	t      *testing.T
	client net.Conn
	server *trackedConn
}

func newTimedConn(t *testing.T) *timedConn {
	client, server := net.Pipe()
	t.Cleanup(func() { _ = client.Close() }) // the test is over
	return &timedConn{t, client, &trackedConn{Conn: server, owner: &Connections{
		Timeouts: Timeouts{Request: 64 * time.Second, Response: 128 * time.Second, Idle: 256 * time.Second},
	}}}
}

// receive sends a byte after a time, which the server must receive.
func (c *timedConn) receive(after time.Duration) {
	c.t.Helper()
	time.AfterFunc(after, func() { _, _ = c.client.Write([]byte("x")) }) // the server notices an error
	if _, err := c.server.Read(make([]byte, 1)); err != nil {
		c.t.Fatalf("after %v: %v", after, err)
	}
}

// wantTimeout checks after what time an operation fails.
func (c *timedConn) wantTimeout(want time.Duration, use func([]byte) (int, error)) {
	c.t.Helper()
	began := time.Now()
	_, err := use(make([]byte, 1))
	if took := time.Since(began); took != want || !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("after %v, want %v: %v", took, want, err)
	}
}

func TestTimeouts(t *testing.T) {
	for name, test := range map[string]func(c *timedConn){
		"a request": func(c *timedConn) {
			SetState(c.server, fasthttp.StateActive)
			c.receive(40 * time.Second)
			c.receive(20 * time.Second)
			c.wantTimeout(4*time.Second, c.server.Read)
		},
		"the next request, and the one after it": func(c *timedConn) {
			SetState(c.server, fasthttp.StateIdle)
			c.receive(200 * time.Second)
			SetState(c.server, fasthttp.StateActive)
			c.receive(60 * time.Second)
			SetState(c.server, fasthttp.StateIdle)
			c.wantTimeout(256*time.Second, c.server.Read)
		},
		"a deadline that a moment more would not change": func(c *timedConn) {
			SetState(c.server, fasthttp.StateIdle)
			c.receive(4 * time.Second)
			SetState(c.server, fasthttp.StateIdle)
			c.wantTimeout(252*time.Second, c.server.Read)
			SetState(c.server, fasthttp.StateIdle)
			c.wantTimeout(256*time.Second, c.server.Read)
		},
		"a response": func(c *timedConn) {
			SetState(c.server, fasthttp.StateActive)
			c.receive(time.Second)
			c.wantTimeout(128*time.Second, c.server.Write)
			c.wantTimeout(0, c.server.Write)
			SetState(c.server, fasthttp.StateActive)
			c.wantTimeout(128*time.Second, c.server.Write)
		},
		"a deadline of the caller": func(c *timedConn) {
			SetState(c.server, fasthttp.StateActive)
			must.Succeed(c.t, c.server.SetReadDeadline(time.Now().Add(time.Second)))
			c.wantTimeout(time.Second, c.server.Read)
			SetState(c.server, fasthttp.StateIdle)
			c.wantTimeout(256*time.Second, c.server.Read)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(newTimedConn(t)) })
		})
	}
}
