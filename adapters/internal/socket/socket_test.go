package socket_test

import (
	"net"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/socket"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// wrapped is a connection around another one.
type wrapped struct {
	net.Conn
	inner net.Conn
}

func (w wrapped) NetConn() net.Conn { return w.inner }

func TestPeek(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = l.Close() })
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	must.Succeed(t, err)
	server, err := l.Accept()
	must.Succeed(t, err)
	t.Cleanup(func() { _ = server.Close() })
	if err := server.SetReadDeadline(time.Unix(1, 0)); err != nil { // it is not for peeking
		t.Fatal(err)
	}
	want := func(state socket.State) {
		t.Helper()
		await.Until(t, "the state of the connection", func() bool {
			return socket.Peek(server) == state && socket.Peek(wrapped{inner: wrapped{inner: server}}) == state
		})
	}
	want(socket.Quiet)
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	want(socket.Data)
	must.Succeed(t, server.SetReadDeadline(time.Time{}))
	if n, err := server.Read(make([]byte, 2)); n != 1 || err != nil {
		t.Errorf("the stream has %d bytes, %v", n, err)
	}
	must.Succeed(t, client.Close())
	want(socket.Closed)
	must.Succeed(t, server.Close())
	want(socket.Closed)
	if got := socket.Peek(wrapped{}); got != socket.Unknown {
		t.Errorf("a connection without a socket is %d", got)
	}
}
