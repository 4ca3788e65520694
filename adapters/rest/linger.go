package rest

import (
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

// lingeringListener makes connections that can be closed without taking the
// answer away from a client that is still sending. Closed with bytes unread, a
// connection is reset, and a client may then never see why it was refused.
type lingeringListener struct{ net.Listener }

// Accept returns the next connection.
func (l lingeringListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &lingeringConn{Conn: c}, nil
}

type lingeringConn struct {
	net.Conn
	lingers atomic.Bool
}

// linger makes the connection take in what the client still sends when it is
// closed, within bounds.
func linger(c net.Conn) {
	if l, ok := c.(*lingeringConn); ok {
		l.lingers.Store(true)
	}
}

// Close closes the connection.
func (c *lingeringConn) Close() error {
	if c.lingers.Load() {
		c.drain()
	}
	return c.Conn.Close()
}

func (c *lingeringConn) drain() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes) // what arrives is of no interest, nor is that it stopped
}
