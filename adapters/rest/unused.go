package rest

import (
	"bytes"
	"sync"
	"time"
)

// How a shutdown treats connections on which no whole request header has come:
// browsers and clients open them ahead of need, and the server would wait for
// them as long as for a call.
const (
	unusedGrace = time.Second            // a request that was on its way arrives
	unusedLook  = 100 * time.Millisecond // how often the others are closed
)

// unusedConns are the connections whose first request header is still to come.
type unusedConns struct {
	mu    sync.Mutex
	conns map[*conn]struct{}
}

func (u *unusedConns) add(c *conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.conns == nil {
		u.conns = make(map[*conn]struct{})
	}
	u.conns[c] = struct{}{}
}

func (u *unusedConns) remove(c *conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.conns, c)
}

// closeUntil closes such connections after the grace, until finished is closed.
func (u *unusedConns) closeUntil(finished <-chan struct{}) {
	grace := time.NewTimer(unusedGrace)
	defer grace.Stop()
	select {
	case <-finished:
		return
	case <-grace.C:
	}
	look := time.NewTicker(unusedLook)
	defer look.Stop()
	for {
		u.closeAll()
		select {
		case <-finished:
			return
		case <-look.C:
		}
	}
}

func (u *unusedConns) closeAll() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c := range u.conns {
		_ = c.Conn.Close() // the server notices and closes the rest
	}
}

// heading looks for the end of the first request header in what a connection
// reads.
type heading struct {
	found bool
	tail  []byte // the end of what was read, where the mark may begin
}

var endOfHeader = []byte("\r\n\r\n")

// look takes in what was read next, and tells whether it ends the header.
func (h *heading) look(read []byte) bool {
	h.tail = append(h.tail, read...)
	h.found = bytes.Contains(h.tail, endOfHeader)
	if keep := len(endOfHeader) - 1; len(h.tail) > keep {
		h.tail = append(h.tail[:0], h.tail[len(h.tail)-keep:]...)
	}
	return h.found
}
