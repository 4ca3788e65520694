package httpconn_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/test/must"
)

// dialFrom opens a connection from a loopback address.
func dialFrom(t *testing.T, l net.Listener, from string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))}
	c, err := d.Dial("tcp4", l.Addr().String())
	must.Succeed(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestBoundPerClient checks that a client at its bound loses its oldest idle connection, that its
// new connection is refused if all others are busy, and that other clients and exempt ones do not
// notice.
func TestBoundPerClient(t *testing.T) {
	inner := newListener(t)
	tracked := httpconn.TrackConnections(httpconn.NewListener(inner, httpconn.ListenerOptions{
		Name: "test", Max: 100, PerClient: 3, Refusal: httpconn.TooManyConnections,
		ClientOf: func(a netip.Addr) (netip.Prefix, bool) {
			return netip.PrefixFrom(a, a.BitLen()), a != netip.MustParseAddr("127.0.0.9")
		},
	}), httpconn.FirstHeader)
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, err := tracked.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	// open opens a connection on which the client has sent a request.
	open := func(from string) (client, server net.Conn) {
		client = dialFrom(t, inner, from)
		server = <-accepted
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return client, server
	}
	isClosed := func(server net.Conn) bool {
		_, err := server.Write([]byte("x"))
		return errors.Is(err, net.ErrClosed)
	}
	var servers []net.Conn
	for range 3 {
		_, server := open("127.0.0.1")
		servers = append(servers, server)
	}
	if received, err := io.ReadAll(dialFrom(t, inner, "127.0.0.1")); err != nil ||
		string(received) != httpconn.TooManyConnections {
		t.Errorf("with three busy connections the fourth got %q, %v", received, err)
	}
	httpconn.SetState(servers[1], fasthttp.StateIdle)
	httpconn.SetState(servers[0], fasthttp.StateIdle)
	_, fourth := open("127.0.0.1")
	if isClosed(servers[0]) || !isClosed(servers[1]) || isClosed(servers[2]) {
		t.Error("the oldest idle connection was not closed, or another one was")
	}
	httpconn.SetState(servers[0], fasthttp.StateActive)
	if received, err := io.ReadAll(dialFrom(t, inner, "127.0.0.1")); err != nil ||
		string(received) != httpconn.TooManyConnections {
		t.Errorf("with a busy connection again the next got %q, %v", received, err)
	}
	for range 5 {
		open("127.0.0.9")
	}
	open("127.0.0.2")
	_ = fourth.Close()
	open("127.0.0.1")
	silent := dialFrom(t, inner, "127.0.0.3")
	first := <-accepted
	for range 3 {
		open("127.0.0.3")
	}
	if !isClosed(first) {
		t.Error("a connection without a request is not idle")
	}
	if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the silent client got %v", err)
	}
}
