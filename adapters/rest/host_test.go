package rest_test

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/resttest"
)

// TestHost expects X-Forwarded-Host to count only if a trusted proxy sends it, and then the value
// that the proxy has added last.
func TestHost(t *testing.T) {
	for _, c := range []struct {
		trusted, forwarded string
		want               string // empty for the address of the listener
	}{
		{"", "localhost", ""},
		{"192.0.2.0/24", "localhost", ""},
		{"127.0.0.1/32", "tools.example.com", "tools.example.com"},
		{"127.0.0.1/32", "localhost, tools.example.com", "tools.example.com"},
		{"127.0.0.1/32", "", ""},
	} {
		cfg := config()
		if c.trusted != "" {
			cfg = resttest.Config(netip.MustParsePrefix(c.trusted))
		}
		s := serve(t, cfg, nil)
		var header []string
		if c.forwarded != "" {
			header = []string{"X-Forwarded-Host", c.forwarded}
		}
		want := c.want
		if want == "" {
			want = s.address
		}
		if got := s.call(t, http.MethodGet, "/v0.1/echo", nil, header...).field(t, "host"); got != want {
			t.Errorf("%q from %s: the host is %s, want %s", c.forwarded, c.trusted, got, want)
		}
	}
}
