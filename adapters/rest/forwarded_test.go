package rest

import (
	"net/netip"
	"strings"
	"testing"
)

// FuzzForwarded checks that the client is the peer or an address in the header, and that everything
// left of the first untrusted address is ignored.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{
		"", ",", "203.0.113.9", "[fe80::1%eth0]:80", "198.51.100.1, 203.0.113.9, 10.0.0.1", "unknown",
		"[2001:db8::1]:80,10.0.0.1", "fe80::1%eth0", "10.0.0.1:99999", "[[", "]",
	} {
		f.Add(seed)
	}
	proxies := Proxies{netip.MustParsePrefix("10.0.0.0/8")}
	peer := netip.MustParseAddr("10.9.9.9")
	f.Fuzz(func(t *testing.T, header string) {
		got := proxies.clientAddress(peer, header)
		if !got.IsValid() || got.Zone() != "" {
			t.Fatalf("%q: the client is %v", header, got)
		}
		found := got == peer
		for _, word := range strings.Split(header, ",") {
			a, err := parseForwarded(strings.TrimSpace(word))
			found = found || err == nil && a == got
		}
		if !found {
			t.Errorf("%q: %v is neither the peer nor in the header", header, got)
		}
		untrusted := "192.0.2.77"
		if after := proxies.clientAddress(peer,
			header+","+untrusted+", 10.0.0.1"); after != netip.MustParseAddr(untrusted) {
			t.Errorf("%q changed the client to %v", header, after)
		}
	})
}

// TestLimitKey expects one key for all addresses of one client, and different keys for different
// clients.
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
			t.Errorf("the key of %s is %s, want %s", c.client, got, c.want)
		}
	}
}
