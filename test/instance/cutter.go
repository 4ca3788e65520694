package instance

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// Cutter is a proxy in front of a server. It can break a connection between the server and the
// client, so that the server carries out a call whose response is lost, or all of them.
type Cutter struct {
	Address string // host:port

	listener net.Listener
	target   string
	marker   atomic.Pointer[string]

	mutex   sync.Mutex
	refuses bool
	ends    []func() // of the connections there were
}

// NewCutter returns a proxy that forwards everything until Cut is called.
func NewCutter(target string) (*Cutter, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	c := &Cutter{Address: l.Addr().String(), listener: l, target: target}
	go c.acceptConnections()
	return c, nil
}

// Cut makes the proxy drop the response to the next request that contains marker, and close the
// connection.
func (c *Cutter) Cut(marker string) { c.marker.Store(&marker) }

// CutAll breaks all connections.
func (c *Cutter) CutAll() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, end := range c.ends {
		end()
	}
	c.ends = nil
}

// Refuse breaks all connections, and each new one until Accept is called.
func (c *Cutter) Refuse() {
	c.setRefuses(true)
	c.CutAll()
}

// Accept ends what Refuse began.
func (c *Cutter) Accept() { c.setRefuses(false) }

func (c *Cutter) setRefuses(refuses bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.refuses = refuses
}

// add keeps what ends a connection, or ends it if connections are refused.
func (c *Cutter) add(end func()) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.refuses {
		end()
		return
	}
	c.ends = append(c.ends, end)
}

// Close closes the listener; connections end with their clients.
func (c *Cutter) Close() { _ = c.listener.Close() } // an error changes nothing

func (c *Cutter) acceptConnections() {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", c.target)
		if err != nil {
			_ = client.Close() // the client notices the close
			continue
		}
		go c.forward(client, server)
	}
}

// forward copies data in both directions until one side closes, or a response is dropped.
func (c *Cutter) forward(client, server net.Conn) {
	end := sync.OnceFunc(func() {
		_ = client.Close() // the end of either side ends both
		_ = server.Close() // likewise
	})
	c.add(end)
	var drop atomic.Bool
	go func() {
		defer end()
		_ = copyWhile(server, client, func(request []byte) bool {
			marker := c.marker.Load()
			if marker != nil && bytes.Contains(request, []byte(*marker)) && c.marker.CompareAndSwap(marker, nil) {
				drop.Store(true)
			}
			return true
		})
	}()
	defer end()
	_ = copyWhile(client, server, func([]byte) bool { return !drop.Load() }) // the error does not matter
}

// copyWhile copies until an error, or until pass returns false for a piece of data.
func copyWhile(to io.Writer, from io.Reader, pass func([]byte) bool) error {
	for buffer := make([]byte, 64<<10); ; {
		n, err := from.Read(buffer)
		if err != nil {
			return err
		}
		if !pass(buffer[:n]) {
			return nil
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return err
		}
	}
}
