package ratelimitapi

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// silence is how long a shutdown waits for a first word on a connection that
// never had one: what was on its way arrives.
const silence = 500 * time.Millisecond

// listener knows its open connections. Probes of ports, and pools that connect
// ahead of need, keep some on which nothing is ever asked; the servers would wait
// for them as for calls in flight, gRPC's even beyond the end of its patience.
type listener struct {
	net.Listener
	mu    sync.Mutex
	open  map[*conn]struct{}
	ended bool
}

func newListener(l net.Listener) *listener {
	return &listener{Listener: l, open: map[*conn]struct{}{}}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = accepted.Close() // the server notices
		return c, nil
	}
	l.open[c] = struct{}{}
	return c, nil
}

// closeSilent closes the connections on which the client has said nothing yet.
func (l *listener) closeSilent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if !c.spoken.Load() {
			_ = c.Conn.Close() // the server notices and closes the rest
		}
	}
}

// closeAll closes all connections, those too that are accepted from now on.
func (l *listener) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for c := range l.open {
		_ = c.Conn.Close() // likewise
	}
}

// conn is a connection of a listener.
type conn struct {
	net.Conn
	listener *listener
	spoken   atomic.Bool // something was read
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.spoken.Load() {
		c.spoken.Store(true)
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite tells the client that nothing more comes, where the connection has
// two halves.
func (c *conn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}
