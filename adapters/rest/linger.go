package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What a connection that is closed in the middle of a request still takes in.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 16 << 20
)

// listener makes connections that can be closed without taking the answer away
// from a client that is still sending. Closed with bytes unread, a connection is
// reset, and a client may then never see why it was refused. It also knows the
// connections that nothing has been asked on, and counts those that the server
// refuses.
type listener struct {
	net.Listener
	unused  *unusedConns
	refused prometheus.Counter
}

// Accept returns the next connection.
func (l listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, unused: l.unused, refused: l.refused}
	l.unused.add(c)
	if secured, ok := accepted.(*tls.Conn); ok {
		return &secureConn{conn: c, tls: secured}, nil
	}
	return c, nil
}

type conn struct {
	net.Conn
	lingers atomic.Bool
	unused  *unusedConns
	first   heading // of the first request; only Read looks at it
	refused prometheus.Counter
	fate    fate // only the goroutine that calls Read or Write looks at it
}

// fate is what becomes of a connection.
type fate int

const (
	undecided fate = iota
	served
	turnedAway
)

// full is what a connection is told that is refused. The library's own words
// speak of its settings and do not say when to come again.
const full = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n" +
	"Content-Type: application/json\r\nContent-Length: 32\r\n\r\n" + `{"error":"too many connections"}`

// Read reads what the client sent. One goroutine at a time calls it or Write.
func (c *conn) Read(p []byte) (int, error) {
	c.fate = served
	n, err := c.Conn.Read(p)
	if !c.first.found && n > 0 && c.first.look(p[:n]) {
		c.unused.remove(c)
	}
	return n, err
}

// Write sends an answer. One that comes before the server looked for a request
// refuses the connection: as many are open as may be. It is said in our words,
// and the server's are dropped.
func (c *conn) Write(p []byte) (int, error) {
	switch {
	case c.turnAway():
		_, err := io.WriteString(c.Conn, full)
		return len(p), err
	case c.fate == turnedAway:
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// turnAway counts the connection as refused, once, unless it is served, and
// tells whether this was the time.
func (c *conn) turnAway() bool {
	if c.fate != undecided {
		return false
	}
	c.fate = turnedAway
	c.refused.Inc()
	return true
}

// linger makes the connection take in what the client still sends when it is
// closed, within bounds.
func linger(c net.Conn) {
	if l, ok := c.(interface{ linger() }); ok {
		l.linger()
	}
}

func (c *conn) linger() { c.lingers.Store(true) }

// Close closes the connection.
func (c *conn) Close() error {
	c.unused.remove(c)
	if c.lingers.Load() {
		c.drain()
	}
	return c.Conn.Close()
}

func (c *conn) drain() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes) // what arrives is of no interest, nor is that it stopped
}

// secureConn is a connection over TLS, which the server knows by its methods.
type secureConn struct {
	*conn
	tls    *tls.Conn
	shaken atomic.Bool
}

// errNotShaken refuses an answer to a client that has not shaken hands.
var errNotShaken = errors.New("no handshake yet")

// Handshake completes the handshake before the first request is read. The
// server has set the deadline of a request for it.
func (c *secureConn) Handshake() error {
	if err := c.tls.HandshakeContext(context.Background()); err != nil {
		return err //nolint:wrapcheck // the server looks at it as if the connection were the library's
	}
	c.shaken.Store(true)
	return nil
}

// ConnectionState tells what was agreed on.
func (c *secureConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// Write sends an answer. It does not make the handshake, as the library would:
// a server that is full refuses a connection from where it accepts them, and
// would wait there for the client.
func (c *secureConn) Write(p []byte) (int, error) {
	if !c.shaken.Load() {
		c.turnAway()
		return 0, errNotShaken
	}
	return c.conn.Write(p)
}
