package httpconn

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// How much a connection still reads when it is closed in the middle of a request.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 16 << 20
)

// How a shutdown treats connections without a request.
const (
	unusedGrace    = 500 * time.Millisecond // a request that is on its way arrives within it
	unusedInterval = 100 * time.Millisecond // how often the others are closed
)

// A FirstRequest says when a connection counts as used.
type FirstRequest uint8

// Kinds of FirstRequest.
const (
	FirstHeader FirstRequest = iota // when a whole HTTP/1 request header has arrived
	FirstByte                       // when the client has sent anything
)

// Connections is a listener that tracks its open connections. Port probes, browsers and connection
// pools open connections on which no request is ever sent; a server that shuts down would wait for
// them as for calls in flight.
//
// A connection marked by [Linger] reads the rest of a request before it is closed. A connection
// that is closed with unread bytes is reset, and a client that is still sending may then never read
// the response.
type Connections struct {
	net.Listener
	// Timeouts are those of all connections, if the server reports their states to [SetState].
	Timeouts Timeouts
	first    FirstRequest

	mu     sync.Mutex
	open   map[*trackedConn]struct{}
	closed bool // by CloseAll
}

// TrackConnections returns a listener that accepts the connections of l.
func TrackConnections(l net.Listener, first FirstRequest) *Connections {
	return &Connections{Listener: l, first: first, open: map[*trackedConn]struct{}{}}
}

// Accept returns the next connection. After CloseAll the connection is closed already.
func (l *Connections) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &trackedConn{Conn: accepted, owner: l}
	if !l.addConn(c) {
		_ = accepted.Close() // the server notices
	}
	if secured, ok := accepted.(*tls.Conn); ok {
		return &secureConn{trackedConn: c, tls: secured}, nil
	}
	return c, nil
}

// addConn tracks a connection. It returns false after CloseAll.
func (l *Connections) addConn(c *trackedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.open[c] = struct{}{}
	return true
}

func (l *Connections) removeConn(c *trackedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// CloseUnused closes, after half a second, connections on which no request has arrived, again and
// again until finished is closed.
func (l *Connections) CloseUnused(finished <-chan struct{}) {
	grace := time.NewTimer(unusedGrace)
	defer grace.Stop()
	select {
	case <-finished:
		return
	case <-grace.C:
	}
	ticker := time.NewTicker(unusedInterval)
	defer ticker.Stop()
	for {
		l.closeUnusedNow()
		select {
		case <-finished:
			return
		case <-ticker.C:
		}
	}
}

func (l *Connections) closeUnusedNow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if !c.used.Load() {
			_ = c.Conn.Close() // the server notices and closes the rest
		}
	}
}

// CloseAll closes all connections, and those that are accepted later.
func (l *Connections) CloseAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for c := range l.open {
		_ = c.Conn.Close() // likewise
	}
}

// Linger makes a connection of [Connections] read what the client still sends when it is closed,
// for at most two seconds and 16 MiB. Other connections are left as they are.
func Linger(c net.Conn) {
	if l, ok := c.(interface{ linger() }); ok {
		l.linger()
	}
}

type trackedConn struct {
	net.Conn
	owner   *Connections
	used    atomic.Bool
	lingers atomic.Bool

	header headerEnd // only Read uses it

	// Only the goroutine of an HTTP server uses these. Servers without Timeouts, as that of gRPC, read
	// and write at the same time.
	idle      bool // since the last response
	receiving deadline
	sending   deadline
}

func (c *trackedConn) Read(p []byte) (int, error) {
	if err := c.beginReceiving(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if n > 0 && !c.used.Load() && (c.owner.first == FirstByte || c.header.findEnd(p[:n])) {
		c.used.Store(true)
	}
	return n, err
}

// beginReceiving begins the time of the request that is received next, or of the wait for it.
func (c *trackedConn) beginReceiving() error {
	if c.owner.Timeouts == (Timeouts{}) {
		return nil
	}
	timeout := c.owner.Timeouts.Request
	if c.idle {
		timeout = c.owner.Timeouts.Idle
	}
	c.sending.begun = false
	return c.receiving.begin(timeout, c.Conn.SetReadDeadline)
}

func (c *trackedConn) Write(p []byte) (int, error) {
	if err := c.sending.begin(c.owner.Timeouts.Response, c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// SetReadDeadline implements net.Conn. The deadline is for the rest of the request.
func (c *trackedConn) SetReadDeadline(t time.Time) error {
	if c.owner.Timeouts != (Timeouts{}) {
		c.receiving = deadline{at: t, begun: true}
	}
	return c.Conn.SetReadDeadline(t)
}

// setState begins the time of a request, or of the wait for the next one.
func (c *trackedConn) setState(state fasthttp.ConnState) {
	c.idle = state == fasthttp.StateIdle
	c.receiving.begun, c.sending.begun = false, false
	SetState(c.Conn, state)
}

func (c *trackedConn) Close() error {
	c.owner.removeConn(c)
	if c.lingers.Load() {
		c.readRest()
	}
	return c.Conn.Close()
}

// NetConn returns the connection below this one.
func (c *trackedConn) NetConn() net.Conn { return c.Conn }

func (c *trackedConn) linger() { c.lingers.Store(true) }

func (c *trackedConn) readRest() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes) // the bytes and the error do not matter
}

// secureConn is a connection over TLS. The HTTP library recognizes it by its methods.
type secureConn struct {
	*trackedConn
	tls *tls.Conn
}

// Handshake completes the handshake before the first request is read, in the time for a request.
func (c *secureConn) Handshake() error {
	if timeout := c.owner.Timeouts.Request; timeout > 0 {
		if err := c.tls.SetDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
	}
	return c.tls.HandshakeContext(context.Background())
}

func (c *secureConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// headerEnd finds the end of the first request header in what a connection reads.
type headerEnd struct {
	tail []byte // the last bytes read, in which the end may begin
}

var endOfHeader = []byte("\r\n\r\n")

// findEnd reports whether the header ends in the bytes that were read next.
func (h *headerEnd) findEnd(read []byte) bool {
	h.tail = append(h.tail, read...)
	found := bytes.Contains(h.tail, endOfHeader)
	if keep := len(endOfHeader) - 1; len(h.tail) > keep {
		h.tail = append(h.tail[:0], h.tail[len(h.tail)-keep:]...)
	}
	return found
}
