package dnsserver

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// Failure is a way to fail.
type Failure int

// The failures. Each holds for all records of a name.
const (
	ServerFailure Failure = iota + 1 // SERVFAIL
	Refused                          // REFUSED
	Silence                          // no answer
	LostOnce                         // no answer to the first question of a type
	Garbage                          // an answer that is not a DNS message
	BrokenRecord                     // an answer whose record is cut off
	Truncation                       // over UDP no records and the flag TC; over TCP the records
	FailingTCP                       // like Truncation, but connections over TCP end without an answer
	MissingAAAA                      // SERVFAIL for AAAA records, success for others
	MissingA                         // SERVFAIL for A records, success for others
)

const (
	ttl           = 1
	maxString     = 255 // bytes of a string of a TXT record (RFC 1035, 3.3.14)
	maxDatagram   = 1232
	lengthOctets  = 2 // before a message over TCP (RFC 1035, 4.2.2)
	headerOctets  = 12
	cutFromAnswer = 3
)

func (s *Server) serveDatagrams(conn net.PacketConn, ended *sync.WaitGroup) {
	for {
		buffer := make([]byte, 64<<10)
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return // the test is over
		}
		ended.Go(func() {
			if answer := s.answer(buffer[:n], false); answer != nil {
				_, _ = conn.WriteTo(answer, from) // the client sees that the answer is missing
			}
		})
	}
}

func (s *Server) serveStream(listener net.Listener, ended *sync.WaitGroup) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // the test is over
		}
		ended.Go(func() {
			defer conn.Close()
			for s.serveMessage(conn) {
			}
		})
		ended.Go(func() {
			<-s.done
			_ = conn.Close() // ends a read
		})
	}
}

// serveMessage answers one message of a connection. It returns false if that is at its end.
func (s *Server) serveMessage(conn net.Conn) bool {
	var length [lengthOctets]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return false
	}
	question := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, question); err != nil {
		return false
	}
	answer := s.answer(question, true)
	if answer == nil {
		return false
	}
	framed := binary.BigEndian.AppendUint16(nil, uint16(len(answer))) // #nosec G115 -- answers of tests are shorter
	_, err := conn.Write(append(framed, answer...))
	return err == nil
}

// answer returns the answer to a message with one question, or nil. It returns after the
// name is not held any more.
func (s *Server) answer(message []byte, overTCP bool) []byte {
	var m dnsmessage.Message
	if m.Unpack(message) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	known := s.begin(q)
	defer s.end(q)
	if known.held != nil {
		select {
		case <-known.held:
		case <-s.done:
			return nil
		}
	}
	answer := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: m.ID, Response: true, Authoritative: true, RecursionDesired: m.RecursionDesired,
			RecursionAvailable: true,
			RCode:              known.rcode(q.Type),
		},
		Questions: m.Questions,
	}
	if answer.RCode == dnsmessage.RCodeSuccess {
		answer.Answers = known.records(q)
	}
	return known.pack(answer, overTCP)
}

func (n *name) rcode(kind dnsmessage.Type) dnsmessage.RCode {
	switch {
	case n.failure == ServerFailure, n.failure == MissingA && kind == dnsmessage.TypeA,
		n.failure == MissingAAAA && kind == dnsmessage.TypeAAAA:
		return dnsmessage.RCodeServerFailure
	case n.failure == Refused:
		return dnsmessage.RCodeRefused
	case !n.exists:
		return dnsmessage.RCodeNameError
	}
	return dnsmessage.RCodeSuccess
}

// pack returns the bytes of the answer, changed by the failure of the name.
func (n *name) pack(answer dnsmessage.Message, overTCP bool) []byte {
	packed, err := answer.Pack()
	if err != nil {
		return nil
	}
	long := len(packed) > maxDatagram || n.failure == Truncation || n.failure == FailingTCP
	switch {
	case n.failure == Silence, n.failure == LostOnce && n.first, n.failure == FailingTCP && overTCP:
		return nil
	case n.failure == Garbage:
		return append(packed[:headerOctets:headerOctets], 0xff, 0xff, 0xff)
	case n.failure == BrokenRecord:
		return packed[:len(packed)-cutFromAnswer]
	case long && !overTCP:
		answer.Truncated, answer.Answers = true, nil
		packed, _ = answer.Pack() // it could be packed with more in it
	}
	return packed
}

// records returns the records that answer the question.
func (n *name) records(q dnsmessage.Question) []dnsmessage.Resource {
	var found []dnsmessage.Resource
	add := func(body dnsmessage.ResourceBody) {
		header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: dnsmessage.ClassINET, TTL: ttl}
		found = append(found, dnsmessage.Resource{Header: header, Body: body})
	}
	switch q.Type {
	case dnsmessage.TypeTXT:
		for _, text := range n.texts {
			add(&dnsmessage.TXTResource{TXT: splitText(text)})
		}
	case dnsmessage.TypeA, dnsmessage.TypeAAAA:
		for _, address := range n.answeredAddresses() {
			if address.Is4() && q.Type == dnsmessage.TypeA {
				add(&dnsmessage.AResource{A: address.As4()})
			}
			if !address.Is4() && q.Type == dnsmessage.TypeAAAA {
				add(&dnsmessage.AAAAResource{AAAA: address.As16()})
			}
		}
	}
	return found
}

// answeredAddresses returns the addresses of this answer.
func (n *name) answeredAddresses() []netip.Addr {
	if len(n.addresses) == 0 {
		return nil
	}
	return n.addresses[0]
}

// splitText returns the strings of the TXT record of a text.
func splitText(text string) []string {
	parts := []string{}
	for len(text) > maxString {
		parts, text = append(parts, text[:maxString]), text[maxString:]
	}
	return append(parts, text)
}
