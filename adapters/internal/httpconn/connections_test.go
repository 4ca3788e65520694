package httpconn

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/must"
)

// dialTracked returns both ends of a connection.
func dialTracked(t *testing.T, l *Connections) (client, server net.Conn) {
	t.Helper()
	client, err := net.Dial("tcp", l.Addr().String())
	must.Succeed(t, err)
	t.Cleanup(func() { _ = client.Close() }) // the test is over
	server, err = l.Accept()
	must.Succeed(t, err)
	return client, server
}

func newConnections(t *testing.T, first FirstRequest) *Connections {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = l.Close() }) // the test is over
	return TrackConnections(l, first)
}

// TestCloseUnused checks that only connections without a request are closed. It sends parts of a
// request.
func TestCloseUnused(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  FirstRequest
		sent   []string
		closed bool
	}{
		{"nothing", FirstHeader, nil, true},
		{"part of a header", FirstHeader, []string{"GET / HTTP/1.1\r\nHost: a\r\n"}, true},
		{"a header", FirstHeader, []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n"}, false},
		{"a header in pieces", FirstHeader, []string{"GET / HTTP/1.1\r\nHost: a\r", "\n\r", "\n"}, false},
		{"no byte", FirstByte, nil, true},
		{"a byte", FirstByte, []string{"P"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newConnections(t, c.first)
			client, server := dialTracked(t, l)
			for _, part := range c.sent {
				if _, err := io.WriteString(client, part); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(server, make([]byte, len(part))); err != nil {
					t.Fatal(err)
				}
			}
			l.closeUnusedNow()
			if _, err := io.WriteString(server, "x"); errors.Is(err, net.ErrClosed) != c.closed {
				t.Errorf("writing to the connection: %v, want it closed: %t", err, c.closed)
			}
		})
	}
}

// TestCloseAll checks that used connections are closed too, and connections that are accepted
// later.
func TestCloseAll(t *testing.T) {
	l := newConnections(t, FirstByte)
	_, before := dialTracked(t, l)
	l.CloseAll()
	_, after := dialTracked(t, l)
	for name, c := range map[string]net.Conn{"before": before, "after": after} {
		if _, err := io.WriteString(c, "x"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accepted %s: %v", name, err)
		}
	}
}

// TestLinger checks that a client can read the response if the server closes the connection while
// the client is still sending.
func TestLinger(t *testing.T) {
	l := newConnections(t, FirstHeader)
	client, server := dialTracked(t, l)
	const rest = 4 << 20
	sent := make(chan error, 1)
	go func() {
		_, err := client.Write(make([]byte, rest))
		sent <- errors.Join(err, client.(*net.TCPConn).CloseWrite())
	}()
	if _, err := io.WriteString(server, "refused"); err != nil {
		t.Fatal(err)
	}
	Linger(server)
	must.Succeed(t, server.Close())
	if err := <-sent; err != nil {
		t.Errorf("sending the rest: %v", err)
	}
	must.Succeed(t, client.SetReadDeadline(time.Now().Add(time.Minute)))
	if got, err := io.ReadAll(client); string(got) != "refused" || err != nil {
		t.Errorf("the client reads %q, %v", got, err)
	}
}
