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
		"", ",", "203.0.113.9", "[fe80::1%eth0]:80", "198.51.100.1, 203.0.113.9, 10.0.0.1", "unknown", "[2001:db8::1]:80,10.0.0.1", "fe80::1%eth0", "10.0.0.1:99999", "[[", "]",
	} {
		f.Add(seed)
	}
	proxies := Proxies{netip.MustParsePrefix("10.0.0.0/8")}
	peer := netip.MustParseAddr("10.9.9.9")
	f.Fuzz(func(t *testing.T, header string) {
		got := proxies.forwarded(peer, header)
		if !got.IsValid() || got.Zone() != "" {
			t.Fatalf("%q: the client is %v", header, got)
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

// TestLimitKey wants one key for all that one client can send from, and for
// nobody else.
func TestLimitKey(t *testing.T) {
	for _, c := range []struct {
		client string
		bits   int
		want   string
	}{
		{"192.0.2.1", 64, "192.0.2.1"},
		{"192.0.2.1", 8, "192.0.2.1"},
		{"2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64"},
		{"2001:db8:1:2:ffff:ffff:ffff:ffff", 64, "2001:db8:1:2::/64"},
		{"2001:db8:1:3::1", 64, "2001:db8:1:3::/64"},
		{"2001:db8:1:2ff::1", 56, "2001:db8:1:200::/56"},
		{"2001:db8:1:2::7", 128, "2001:db8:1:2::7"},
		{"64:ff9b::192.0.2.1", 64, "64:ff9b::c000:201"},
		{"64:ff9b::192.0.2.2", 64, "64:ff9b::c000:202"},
		{"64:ff9b:0:0:0:1:192.0.2.2", 64, "64:ff9b::/64"},
		{"64:ff9b:1::192.0.2.1", 64, "64:ff9b:1::c000:201"},
		{"64:ff9b:1:ffff:1::192.0.2.2", 64, "64:ff9b:1:ffff:1:0:c000:202"},
		{"64:ff9b:2::192.0.2.1", 64, "64:ff9b:2::/64"},
		{"64:ff9c::192.0.2.1", 64, "64:ff9c::/64"},
		{"::1", 64, "::/64"},
		{"fe80::1", 64, "fe80::/64"},
	} {
		if got := limitKey(clientOf(netip.MustParseAddr(c.client), c.bits)); got != c.want {
			t.Errorf("%s is counted by %s, want %s", c.client, got, c.want)
		}
	}
}
