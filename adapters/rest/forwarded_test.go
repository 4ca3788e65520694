package rest

import (
	"net/netip"
	"strings"
	"testing"
)

// FuzzForwarded checks that the client is the peer or an address of the header,
// and that nothing left of the first stranger counts.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{
		"", ",", "203.0.113.9", "198.51.100.1, 203.0.113.9, 10.0.0.1", "unknown", "[2001:db8::1]:80,10.0.0.1", "fe80::1%eth0", "10.0.0.1:99999", "[[", "]",
	} {
		f.Add(seed)
	}
	proxies := Proxies{netip.MustParsePrefix("10.0.0.0/8")}
	peer := netip.MustParseAddr("10.9.9.9")
	f.Fuzz(func(t *testing.T, header string) {
		got := proxies.forwarded(peer, header)
		if !got.IsValid() {
			t.Fatalf("%q: no address", header)
		}
		known := got == peer
		for _, word := range strings.Split(header, ",") {
			a, err := parseForwarded(strings.TrimSpace(word))
			known = known || err == nil && a == got
		}
		if !known {
			t.Errorf("%q: %v comes from nowhere", header, got)
		}
		stranger := "192.0.2.77"
		if after := proxies.forwarded(peer, header+","+stranger+", 10.0.0.1"); after != netip.MustParseAddr(stranger) {
			t.Errorf("%q moved the client to %v", header, after)
		}
	})
}
