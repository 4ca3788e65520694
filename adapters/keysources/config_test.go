package keysources

import (
	"net/netip"
	"strings"
	"testing"
)

func TestConfigIsValid(t *testing.T) {
	t.Parallel()
	for _, resolver := range []string{"", "192.0.2.1:53", "[2001:db8::1]:53", "dns.example:5353", "localhost:1"} {
		if err := (Config{
			Resolver: resolver, Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		}).Validate(); err != nil {
			t.Errorf("Validate(%q) = %v", resolver, err)
		}
	}
}

func TestConfigErrorBeginsWithTheSetting(t *testing.T) {
	t.Parallel()
	for _, resolver := range []string{
		"192.0.2.1", ":53", "192.0.2.1:", "192.0.2.1:dns", "192.0.2.1:0", "192.0.2.1:65536", "2001:db8::1",
		"udp://192.0.2.1:53",
	} {
		if err := (Config{
			Resolver: resolver,
		}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "PUBLISHER_DNS_RESOLVER: ") {
			t.Errorf("Validate(%q) = %v, want an error that begins with the setting", resolver, err)
		}
	}
	if err := (Config{
		Networks: []netip.Prefix{{}},
	}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "PUBLISHER_PROOF_NETWORKS: ") {
		t.Errorf("Validate = %v, want an error that begins with the setting", err)
	}
}
