package registryclient

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// dialTimeout bounds one attempt to connect.
const dialTimeout = 5 * time.Second

// errPrivate is the cause of a dial that the guard refused.
type errPrivate struct{ address string }

func (e *errPrivate) Error() string { return fmt.Sprintf("address %s is not public", e.address) }

// guardedDial returns a dial function that connects to public addresses only. The check is made on the address that is about to
// be connected to, after the name was resolved, so that a name whose address changes between two look-ups does not pass.
func guardedDial() func(context.Context, string, string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !public(at.Addr()) {
			return &errPrivate{address: address}
		}
		return nil
	}}
	return dialer.DialContext
}

// public reports whether a may be an address of the public internet. Private, loopback, link-local
// and multicast ones are not (contract R-59), nor are those that lead into the machine's own
// network by another way. An address that is mapped from IPv4 is judged as that address; those that
// contain one otherwise (NAT64, 6to4, Teredo) are refused.
func public(a netip.Addr) bool {
	if a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if !a.IsValid() || !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	if a.Is6() && !globalUnicast6().Contains(a) {
		return false
	}
	for _, block := range special() {
		if block.Contains(a) {
			return false
		}
	}
	return true
}

// globalUnicast6 is all of IPv6 that is assigned to the internet (RFC 4291); NAT64, ULA, link-local and IPv4-compatible
// addresses are outside.
func globalUnicast6() netip.Prefix { return prefix([]byte{0x20, 15: 0}, 3) }

// special lists the blocks inside global unicast that are for use inside a network (RFC 6890 and its registries). Blocks for
// documentation are not: they are nobody's inside.
func special() []netip.Prefix {
	return []netip.Prefix{
		prefix([]byte{0, 0, 0, 0}, 8),         // this network
		prefix([]byte{100, 64, 0, 0}, 10),     // carrier-grade NAT, RFC 6598
		prefix([]byte{192, 0, 0, 0}, 24),      // protocol assignments
		prefix([]byte{192, 88, 99, 0}, 24),    // 6to4 relays
		prefix([]byte{198, 18, 0, 0}, 15),     // benchmarks
		prefix([]byte{240, 0, 0, 0}, 4),       // reserved, and broadcast
		prefix([]byte{0x20, 0x01, 15: 0}, 23), // protocol assignments, Teredo among them
		prefix([]byte{0x20, 0x02, 15: 0}, 16), // 6to4
	}
}

func prefix(bytes []byte, bits int) netip.Prefix {
	a, _ := netip.AddrFromSlice(bytes) // 4 or 16 bytes, all written above
	return netip.PrefixFrom(a, bits)
}
