package rest

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// What a connection that is closed in the middle of a request still takes in.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 16 << 20
)

// listener makes connections that can be closed without taking the answer away
// from a client that is still sending. Closed with bytes unread, a connection is
// reset, and a client may then never see why it was refused. It also knows the
// connections that nothing has been asked on.
type listener struct {
	net.Listener
	unused *unusedConns
}

// Accept returns the next connection.
func (l listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, unused: l.unused}
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
}

// Read reads what the client sent.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.first.found && n > 0 && c.first.look(p[:n]) {
		c.unused.remove(c)
	}
	return n, err
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
	tls *tls.Conn
}

// Handshake completes the handshake before the first request is read. The
// server has set the deadline of a request for it.
func (c *secureConn) Handshake() error {
	return c.tls.HandshakeContext(context.Background())
}

// ConnectionState returns what was agreed on.
func (c *secureConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }
