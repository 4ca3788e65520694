package publicdial

import (
	"net/netip"
	"testing"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"1.1.1.1": true, "151.101.1.1": true, "172.15.0.1": true, "172.32.0.1": true, "100.63.0.1": true,
		"100.128.0.1":     true,
		"2606:4700::1111": true, "2a04:4e42::223": true, "::ffff:1.1.1.1": true,

		"127.0.0.1": false, "127.255.0.9": false, "0.0.0.0": false, "0.1.2.3": false,
		"10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "100.127.255.255": false, "198.18.0.1": false,
		"192.0.0.192": false,
		"224.0.0.1":   false, "239.1.1.1": false, "240.0.0.1": false, "255.255.255.255": false, "192.88.99.1": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "2606:4700::1%eth0": false,
		"fc00::1": false, "fd12:3456::1": false, "fec0::1": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::101:101": false, "64:ff9b:1::1": false, "2002:7f00:1::1": false,
		"2001:0:1::1": false,
	} {
		if got := IsPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("public(%s) = %t, want %t", address, got, want)
		}
	}
	if IsPublic(netip.Addr{}) {
		t.Error("the zero address is public")
	}
}
