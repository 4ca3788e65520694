package ratelimitapi

import (
	"io"
	"net"
	"sync/atomic"
	"time"
)

// A connection closed with bytes unread is reset, and a client that is still
// sending may then never read why it was refused. So a refused connection takes
// in the rest, up to these bounds.
const (
	restTime  = time.Second
	restBytes = 16 << 20
)

// patientListener accepts connections that can take in the rest.
type patientListener struct{ net.Listener }

// Accept implements net.Listener.
func (l patientListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &patientConn{Conn: c}, nil
}

type patientConn struct {
	net.Conn
	refused atomic.Bool
}

// refuseRest marks the connection of a request that was not read to its end.
func refuseRest(c net.Conn) {
	if p, ok := c.(*patientConn); ok {
		p.refused.Store(true)
	}
}

// Close implements net.Conn.
func (c *patientConn) Close() error {
	if c.refused.Load() {
		c.takeRest()
	}
	return c.Conn.Close()
}

func (c *patientConn) takeRest() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.SetReadDeadline(time.Now().Add(restTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.Conn, restBytes) // only that it is taken matters
}
