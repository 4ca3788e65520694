// Package dnsserver runs a real DNS server within a test. It answers over UDP and TCP on one
// loopback port with what the test sets, counts the questions, and can fail in the ways in which
// DNS servers fail. It is the authority for every name, and follows no aliases.
package dnsserver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Server is a DNS server on this machine. Its methods may be called at any time and concurrently.
// Names are without the dot at the end.
type Server struct {
	// Address is the host and the port of the server.
	Address string

	done chan struct{} // closed when the test ends
	mu   sync.Mutex
	at   map[string]*name
}

// name is what the server knows about a name.
type name struct {
	texts     []string
	addresses [][]netip.Addr // by question; the last ones count for all later questions
	failure   Failure
	held      chan struct{} // questions wait until it is closed; nil means they do not wait
	exists    bool
	asked     map[dnsmessage.Type]int
	first     bool // of the copy for a question: it is the first of its type
	open      int  // questions without an answer
	mostOpen  int
}

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s, stop, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

// Listen runs a server until stop is called.
func Listen() (s *Server, stop func(), err error) {
	datagrams, stream, err := listenBoth()
	if err != nil {
		return nil, nil, err
	}
	s = &Server{Address: stream.Addr().String(), done: make(chan struct{}), at: map[string]*name{}}
	var ended sync.WaitGroup
	ended.Go(func() { s.serveDatagrams(datagrams, &ended) })
	ended.Go(func() { s.serveStream(stream, &ended) })
	return s, func() {
		close(s.done)
		_, _ = datagrams.Close(), stream.Close() // nothing is answered any more
		ended.Wait()
	}, nil
}

// listenBoth returns listeners for UDP and for TCP on the same port. The port that the system
// chooses for one may be in use for the other, so listenBoth tries several.
func listenBoth() (net.PacketConn, net.Listener, error) {
	const tries = 20
	var failure error
	for range tries {
		stream, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, fmt.Errorf("listen for DNS: %w", err)
		}
		datagrams, err := new(net.ListenConfig).ListenPacket(context.Background(), "udp", stream.Addr().String())
		if err == nil {
			return datagrams, stream, nil
		}
		failure = fmt.Errorf("listen for DNS: %w", err)
		_ = stream.Close() // another port is tried
	}
	return nil, nil, failure
}

// SetTXT replaces the TXT records of a name. A text over 255 bytes becomes a record of several
// strings. Without texts the name exists and has no TXT records.
func (s *Server) SetTXT(host string, texts ...string) {
	s.change(host, func(n *name) { n.texts, n.exists = slices.Clone(texts), true })
}

// SetAddresses replaces the A and AAAA records of a name.
func (s *Server) SetAddresses(host string, addresses ...netip.Addr) {
	s.SetAddressSequence(host, addresses)
}

// SetAddressSequence replaces the A and AAAA records of a name by some that change with each
// question of a type. The last ones do not change any more.
func (s *Server) SetAddressSequence(host string, sequence ...[]netip.Addr) {
	s.change(host, func(n *name) {
		n.addresses, n.exists = slices.Clone(sequence), true
		n.asked = map[dnsmessage.Type]int{}
	})
}

// SetFailure makes the server fail for a name; 0 ends that. The records are kept.
func (s *Server) SetFailure(host string, f Failure) {
	s.change(host, func(n *name) { n.failure = f })
}

// Remove makes a name not exist: NXDOMAIN.
func (s *Server) Remove(host string) {
	s.change(host, func(n *name) { n.texts, n.addresses, n.exists = nil, nil, false })
}

// Hold makes the questions about a name wait until the returned function is called, which may be
// called more than once.
func (s *Server) Hold(host string) (release func()) {
	held := make(chan struct{})
	s.change(host, func(n *name) { n.held = held })
	return sync.OnceFunc(func() {
		s.change(host, func(n *name) { n.held = nil })
		close(held)
	})
}

// Questions returns the number of questions about records of a type of a name, repeated ones
// included.
func (s *Server) Questions(host string, kind dnsmessage.Type) int {
	var count int
	s.change(host, func(n *name) { count = n.asked[kind] })
	return count
}

// MostOpen returns how many questions about a name were without an answer at the same time.
func (s *Server) MostOpen(host string) int {
	var most int
	s.change(host, func(n *name) { most = n.mostOpen })
	return most
}

func (s *Server) change(host string, change func(*name)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if s.at[host] == nil {
		s.at[host] = &name{asked: map[dnsmessage.Type]int{}}
	}
	change(s.at[host])
}

// begin counts a question and returns a copy of what the server knows about the name.
func (s *Server) begin(q dnsmessage.Question) (known name) {
	s.change(q.Name.String(), func(n *name) {
		n.open++
		n.mostOpen = max(n.mostOpen, n.open)
		known = *n
		if len(n.addresses) > 0 {
			known.addresses = n.addresses[min(n.asked[q.Type], len(n.addresses)-1):][:1]
		}
		known.first = n.asked[q.Type] == 0
		n.asked[q.Type]++
	})
	return known
}

func (s *Server) end(q dnsmessage.Question) { s.change(q.Name.String(), func(n *name) { n.open-- }) }
