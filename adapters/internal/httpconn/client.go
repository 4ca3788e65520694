package httpconn

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// clients are the open connections of a listener with a bound for each client.
type clients struct {
	mu    sync.Mutex
	conns map[netip.Prefix]map[*boundedConn]struct{}
}

// add adds a connection. If its client has as many as the bound, it closes the oldest idle one, or
// returns false if all are busy.
func (l *clients) add(c *boundedConn, bound int) bool {
	if !c.client.IsValid() {
		return true
	}
	l.mu.Lock()
	var oldest *boundedConn
	if len(l.conns[c.client]) >= bound {
		if oldest = takeOldestIdle(l.conns[c.client]); oldest == nil {
			l.mu.Unlock()
			return false
		}
		delete(l.conns[c.client], oldest)
	}
	if l.conns == nil {
		l.conns = map[netip.Prefix]map[*boundedConn]struct{}{}
	}
	if l.conns[c.client] == nil {
		l.conns[c.client] = map[*boundedConn]struct{}{}
	}
	l.conns[c.client][c] = struct{}{}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // its server notices
	}
	return true
}

// takeOldestIdle returns the connection that has been idle for the longest time, and marks it as
// closing; nil if all are busy.
func takeOldestIdle(conns map[*boundedConn]struct{}) *boundedConn {
	for {
		var oldest *boundedConn
		var first int64
		for c := range conns {
			if idle := c.idle.Load(); idle > 0 && (oldest == nil || idle < first) {
				oldest, first = c, idle
			}
		}
		if oldest == nil || oldest.idle.CompareAndSwap(first, closing) {
			return oldest
		}
	}
}

func (l *clients) remove(c *boundedConn) {
	if !c.client.IsValid() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns[c.client], c)
	if len(l.conns[c.client]) == 0 {
		delete(l.conns, c.client)
	}
}

func peerAddress(c net.Conn) netip.Addr {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// Values of boundedConn.idle for connections that are not idle.
const (
	busy    = 0
	closing = -1
)

// boundedConn is an accepted connection.
type boundedConn struct {
	net.Conn
	listener *Listener
	client   netip.Prefix // the zero value without a bound
	closed   sync.Once
	received atomic.Bool  // the client has sent something
	idle     atomic.Int64 // its place among all that became idle
}

// SetState records whether a connection of a [Listener] or of [Connections] is idle, for
// ListenerOptions.PerClient and for Timeouts. It is the ConnState of a server.
func SetState(c net.Conn, state fasthttp.ConnState) {
	switch conn := c.(type) {
	case interface {
		setState(state fasthttp.ConnState)
	}:
		conn.setState(state)
	case interface{ NetConn() net.Conn }: // TLS
		SetState(conn.NetConn(), state)
	}
}

func (c *boundedConn) setState(state fasthttp.ConnState) {
	switch {
	case state == fasthttp.StateIdle:
		c.idle.CompareAndSwap(busy, c.listener.idles.Add(1))
	case state == fasthttp.StateActive && c.received.Load(): // a new connection has this state before a request
		c.setBusy()
	}
}

func (c *boundedConn) setBusy() {
	if place := c.idle.Load(); place > 0 {
		c.idle.CompareAndSwap(place, busy)
	}
}

func (c *boundedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		if !c.received.Load() {
			c.received.Store(true)
		}
		c.setBusy()
	}
	return n, err
}

// Close closes the connection and makes room for another one.
func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.closed.Do(func() {
		c.listener.open.Add(-1)
		c.listener.clients.remove(c)
	})
	return err
}

// CloseWrite closes the sending half, where the connection has two halves.
func (c *boundedConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}
