package publicdial

import (
	"net/netip"
	"slices"
	"strings"
)

// IsPublic reports whether a is an address of the public internet. It returns false for private,
// loopback, link-local and multicast addresses (contract R-59), and for other addresses that lead
// into an internal network. An address that is mapped from IPv4 counts as the IPv4 address.
// Addresses that contain an IPv4 address in another form (NAT64, 6to4, Teredo) are not public.
func IsPublic(a netip.Addr) bool {
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
	return !slices.ContainsFunc(specialBlocks(), func(block netip.Prefix) bool { return block.Contains(a) })
}

// IsLoopback reports whether a host is this machine: localhost or a loopback address. Unencrypted
// connections to it are safe.
func IsLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// IsPublicHost reports whether a request for host may go through a proxy that resolves names: host
// is a public address, or a name that is not reserved for internal networks.
func IsPublicHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if address, err := netip.ParseAddr(host); err == nil {
		return IsPublic(address)
	}
	labels := strings.Split(host, ".")
	top := labels[len(labels)-1]
	switch {
	case len(labels) < 2 || slices.Contains(labels, ""):
		return false
	case top[0] >= '0' && top[0] <= '9': // an IPv4 address in an unusual form, for example 127.1 or 0x7f.1
		return false
	case strings.HasSuffix(host, ".home.arpa"):
		return false
	}
	return !slices.Contains([]string{"localhost", "localdomain", "local", "internal", "lan"}, top)
}

// globalUnicast6 returns the part of IPv6 that is assigned to the internet (RFC 4291). It excludes
// NAT64, ULA, link-local and IPv4-compatible addresses.
func globalUnicast6() netip.Prefix { return newPrefix([]byte{0x20, 15: 0}, 3) }

// specialBlocks returns the blocks of global unicast addresses that are used inside networks (RFC
// 6890 and its registries). Documentation blocks are not in the list because no network uses them.
func specialBlocks() []netip.Prefix {
	return []netip.Prefix{
		newPrefix([]byte{0, 0, 0, 0}, 8),         // this network
		newPrefix([]byte{100, 64, 0, 0}, 10),     // carrier-grade NAT, RFC 6598
		newPrefix([]byte{192, 0, 0, 0}, 24),      // protocol assignments
		newPrefix([]byte{192, 88, 99, 0}, 24),    // 6to4 relays
		newPrefix([]byte{198, 18, 0, 0}, 15),     // benchmarks
		newPrefix([]byte{240, 0, 0, 0}, 4),       // reserved, and broadcast
		newPrefix([]byte{0x20, 0x01, 15: 0}, 23), // protocol assignments, including Teredo
		newPrefix([]byte{0x20, 0x02, 15: 0}, 16), // 6to4
	}
}

func newPrefix(bytes []byte, bits int) netip.Prefix {
	a, _ := netip.AddrFromSlice(bytes) // always 4 or 16 bytes
	return netip.PrefixFrom(a, bits)
}
