package instance

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Delayer is a proxy in front of a server that delivers what the server sends with a delay, as a
// slow network does: many responses may be on their way at the same time. It can also keep it back.
type Delayer struct {
	Address string // host:port

	listener net.Listener
	target   string
	delay    atomic.Int64
	held     atomic.Pointer[hold]
}

// hold keeps back what the server sends until free is closed. asked is closed once a request
// contained marker.
type hold struct {
	marker      []byte
	ask         func()
	asked, free chan struct{}
}

// NewDelayer returns a proxy that delays nothing until SetDelay is called.
func NewDelayer(target string) (*Delayer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	d := &Delayer{Address: l.Addr().String(), listener: l, target: target}
	go d.acceptConnections()
	return d, nil
}

// SetDelay sets the delay of what the server sends from now on.
func (d *Delayer) SetDelay(delay time.Duration) { d.delay.Store(int64(delay)) }

// Hold keeps back what the server sends from now on, until release is called, which may be called
// again. asked is closed as soon as a request contains marker.
func (d *Delayer) Hold(marker string) (asked <-chan struct{}, release func()) {
	h := &hold{marker: []byte(marker), asked: make(chan struct{}), free: make(chan struct{})}
	h.ask = sync.OnceFunc(func() { close(h.asked) })
	d.held.Store(h)
	return h.asked, sync.OnceFunc(func() {
		d.held.CompareAndSwap(h, nil)
		close(h.free)
	})
}

// noteRequest looks for the marker of the current hold in a piece of a request.
func (d *Delayer) noteRequest(request []byte) bool {
	if h := d.held.Load(); h != nil && bytes.Contains(request, h.marker) {
		h.ask()
	}
	return true
}

// Close closes the listener; connections end with their clients.
func (d *Delayer) Close() { _ = d.listener.Close() } // an error changes nothing

func (d *Delayer) acceptConnections() {
	for {
		client, err := d.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", d.target)
		if err != nil {
			_ = client.Close() // the client notices the close
			continue
		}
		end := sync.OnceFunc(func() {
			_ = client.Close() // the end of either side ends both
			_ = server.Close() // likewise
		})
		go func() {
			defer end()
			_ = copyWhile(server, client, d.noteRequest) // the error does not matter
		}()
		go d.deliver(client, server, end)
	}
}

// delayed is a piece of data, when it is due, and what keeps it back.
type delayed struct {
	data []byte
	due  time.Time
	held *hold // or nil
}

// deliver reads from the server at once and writes to the client when the data is due.
func (d *Delayer) deliver(client io.Writer, server io.Reader, end func()) {
	line := make(chan delayed, 1<<12)
	go func() {
		defer end()
		for piece := range line {
			time.Sleep(time.Until(piece.due))
			if piece.held != nil {
				<-piece.held.free
			}
			if _, err := client.Write(piece.data); err != nil {
				break
			}
		}
		for range line { // so that the reader ends
		}
	}()
	defer close(line)
	_ = copyWhile(pieces{line, d}, server, func([]byte) bool { return true }) // the error does not matter
}

// pieces puts what is written on the line.
type pieces struct {
	line chan<- delayed
	of   *Delayer
}

// Write implements io.Writer.
func (p pieces) Write(data []byte) (int, error) {
	due := time.Now().Add(time.Duration(p.of.delay.Load()))
	p.line <- delayed{append([]byte(nil), data...), due, p.of.held.Load()}
	return len(data), nil
}
