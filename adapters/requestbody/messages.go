package requestbody

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// MessageTime is how long a message of a gRPC call may take to arrive.
const MessageTime = 30 * time.Second

// What the server needs besides the bytes of messages, in bytes.
const (
	callSize  = 4 << 10 // for a call whose message has not arrived: its goroutine and its header
	frameSize = 64      // for each frame
)

// errOverdue is why the connection of a message that does not arrive is closed.
var errOverdue = fmt.Errorf("%w of %v for a message of a gRPC call", ErrTimeout, MessageTime)

// BoundMessages returns a connection of a gRPC server whose unfinished messages take their memory
// from the budget. The library keeps what has arrived of a message for as long as the call is open,
// and has no bound for all calls and connections together. A connection whose messages have no
// memory left, or do not arrive in time, fails at its next read, so that the library closes it. Calls
// whose message arrives at once with their header take nothing from the budget.
func (b *Budget) BoundMessages(c net.Conn) net.Conn {
	return &messageConn{
		Conn: c, calls: map[uint32]call{}, memory: reservation{budget: b}, in: frame{left: len(preface)},
	}
}

// preface is what an HTTP/2 client sends before its first frame (RFC 9113, 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// messageConn follows the frames of a connection (RFC 9113, 4.1).
type messageConn struct {
	net.Conn
	in, out frame // only Read, only Write uses it
	waits   bool  // a message is unfinished, as of the last read
	armed   bool  // the read deadline is set

	mu     sync.Mutex // guards what follows
	calls  map[uint32]call
	last   uint32 // greatest stream
	held   int    // bytes of unfinished messages
	memory reservation
	closed bool
}

// frame is the frame that is being read or written.
type frame struct {
	header [9]byte
	got    int // bytes of the header
	left   int // bytes of the payload that are to come
	pad    int // bytes at the end of the payload that are padding
}

// Kinds and flags of frames (RFC 9113, 6).
const (
	dataFrame, headersFrame, resetFrame = 0, 1, 3
	endStream, padded                   = 1, 8
)

func (f *frame) length() int        { return int(binary.BigEndian.Uint32(f.header[:4]) >> 8) }
func (f *frame) has(flag byte) bool { return f.header[4]&flag != 0 }
func (f *frame) stream() uint32     { return binary.BigEndian.Uint32(f.header[5:]) &^ (1 << 31) }

// isLast reports whether a stream has no frames of this side after the frame, which has passed.
func (f *frame) isLast() bool {
	kind := f.header[3]
	return f.left == 0 && (kind == resetFrame || (kind == dataFrame || kind == headersFrame) && f.has(endStream))
}

// follow calls do at the beginning of each frame, with nil, and for each part of its payload.
func (f *frame) follow(p []byte, do func(*frame, []byte)) {
	for len(p) > 0 {
		if f.left > 0 {
			n := min(len(p), f.left)
			f.left -= n
			do(f, p[:n])
			p = p[n:]
			continue
		}
		n := copy(f.header[f.got:], p)
		f.got, p = f.got+n, p[n:]
		if f.got == len(f.header) {
			f.got, f.pad = 0, 0
			f.left = f.length()
			do(f, nil)
		}
	}
}

// call is an open call. Its zero value has no unfinished message.
type call struct {
	began time.Time // of the unfinished message
	held  int       // bytes
	got   int       // bytes of the message's header: a flag and its length
	rest  uint32    // bytes of the message that are to come
}

const messageHeader = 5

// hold adds bytes that the library keeps for an unfinished message.
func (m *call) hold(n int) {
	if m.held == 0 {
		m.began = time.Now()
	}
	m.held += n
}

// take follows a part of the messages. Of finished ones nothing is held: they are being handled.
func (m *call) take(p []byte) {
	m.hold(len(p))
	for len(p) > 0 {
		if m.got < messageHeader {
			if m.got > 0 {
				m.rest = m.rest<<8 | uint32(p[0])
			}
			m.got, p = m.got+1, p[1:]
		} else {
			n := min(len(p), int(m.rest))
			m.rest, p = m.rest-uint32(n), p[n:] //nolint:gosec // at most rest
		}
		if m.got == messageHeader && m.rest == 0 {
			m.got, m.held = 0, 0
			if len(p) > 0 {
				m.hold(len(p) + frameSize)
			}
		}
	}
}

// Read implements [net.Conn]. The library does not set read deadlines while it serves calls.
func (c *messageConn) Read(p []byte) (int, error) {
	for {
		if c.waits && !c.armed {
			c.armed = true
			if err := c.SetReadDeadline(time.Now().Add(MessageTime)); err != nil {
				return 0, err
			}
		}
		n, err := c.Conn.Read(p)
		if n == 0 && c.armed && errors.Is(err, os.ErrDeadlineExceeded) {
			if err = c.rearm(); err == nil {
				continue
			}
			return 0, err
		}
		if bound := c.settle(func() { c.in.follow(p[:n], c.received) }); bound != nil {
			return 0, bound
		}
		return n, err
	}
}

// rearm sets the read deadline to that of the oldest unfinished message, which must not have passed.
func (c *messageConn) rearm() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var oldest time.Time
	for _, m := range c.calls {
		if m.held > 0 && (oldest.IsZero() || m.began.Before(oldest)) {
			oldest = m.began
		}
	}
	c.waits = !oldest.IsZero()
	if c.armed = c.waits; !c.armed {
		return c.SetReadDeadline(time.Time{})
	}
	deadline := oldest.Add(MessageTime)
	if !deadline.After(time.Now()) {
		return errOverdue
	}
	return c.SetReadDeadline(deadline)
}

// Write implements [net.Conn].
func (c *messageConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	_ = c.settle(func() { // it takes nothing
		c.out.follow(p[:n], func(f *frame, _ []byte) {
			if f.isLast() {
				c.end(f.stream())
			}
		})
	})
	return n, err
}

// Close implements [net.Conn].
func (c *messageConn) Close() error {
	_ = c.settle(func() { c.closed, c.held = true, 0 }) // likewise
	return c.Conn.Close()
}

// settle takes from the budget what is held after do, or gives it back.
func (c *messageConn) settle(do func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	switch more := c.held - c.memory.size; {
	case more > 0 && !c.closed:
		if err := c.memory.grow(more, c.held); err != nil {
			return err
		}
	case more < 0:
		c.memory.shrink(-more)
	}
	return nil
}

// received follows a frame of the client. c.mu must be locked.
func (c *messageConn) received(f *frame, p []byte) {
	id := f.stream()
	m, open := c.calls[id]
	switch {
	case f.header[3] == headersFrame && p == nil && id > c.last:
		c.last, c.held = id, c.held+callSize
		c.calls[id] = call{began: time.Now(), held: callSize}
	case f.header[3] == dataFrame && open:
		c.held -= m.held
		if p == nil && f.left > 0 {
			m.hold(frameSize)
		} else if p = f.withoutPadding(p); len(p) > 0 {
			m.take(p)
		}
		c.held += m.held
		c.calls[id] = m
	}
	if f.isLast() {
		c.end(id)
	}
	c.waits = c.held > 0
}

// withoutPadding returns a part of the payload without the padding that its frame may have.
func (f *frame) withoutPadding(p []byte) []byte {
	if len(p) == 0 || !f.has(padded) {
		return p
	}
	if f.left+len(p) == f.length() {
		f.pad, p = int(p[0]), p[1:]
	}
	return p[:max(0, len(p)-max(0, f.pad-f.left))]
}

// end forgets a call. c.mu must be locked.
func (c *messageConn) end(id uint32) {
	c.held -= c.calls[id].held
	delete(c.calls, id)
}
