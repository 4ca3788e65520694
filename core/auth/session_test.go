package auth_test

import (
	"net/netip"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// TestIsNear checks which addresses are near that of a session.
func TestIsNear(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]bool{
		{"192.0.2.1", "192.0.2.1"}: true, {"192.0.2.1", "192.0.2.2"}: false, {"127.0.0.1", "::1"}: true,
		{"2001:db8::1", "2001:db8::ffff:1"}: true, {"2001:db8::1", "2001:db8:0:1::1"}: false, {"192.0.2.1", "2001:db8::1"}: false,
	} {
		s := auth.Session{IPAddress: netip.MustParseAddr(pair[0])}
		wantEqual(t, s.IsNear(netip.MustParseAddr(pair[1])), want, "%v", pair)
	}
}
