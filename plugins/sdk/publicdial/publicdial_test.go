package publicdial

import (
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
)

// listen returns the address of a listener that accepts connections until the test ends.
func listen(t *testing.T, network, address string) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // no test depends on its error
	return listener.Addr().String()
}

func TestDialConnectsToAllowedAddresses(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(listen(t, "tcp4", "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		host    string
		allowed []string
		want    bool
	}{
		"no network":               {"127.0.0.1", nil, false},
		"the network":              {"127.0.0.1", []string{"10.0.0.0/8", "127.0.0.0/8"}, true},
		"the address":              {"127.0.0.1", []string{"127.0.0.1/32"}, true},
		"another address":          {"127.0.0.1", []string{"127.0.0.2/32"}, false},
		"the mapped network":       {"127.0.0.1", []string{"::ffff:127.0.0.0/104"}, true},
		"all of IPv6":              {"127.0.0.1", []string{"::/0"}, false},
		"a mapped address":         {"::ffff:127.0.0.1", []string{"127.0.0.0/8"}, true},
		"a mapped address refused": {"::ffff:127.0.0.1", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var allowed []netip.Prefix
			for _, network := range c.allowed {
				allowed = append(allowed, netip.MustParsePrefix(network))
			}
			conn, err := New(Config{Allowed: allowed})(t.Context(), "tcp", net.JoinHostPort(c.host, port))
			if err == nil {
				_ = conn.Close() // nothing was written
			}
			if refused := (*RefusedError)(nil); c.want != (err == nil) || !c.want && !errors.As(err, &refused) {
				t.Errorf("dial of %s = %v, want a connection: %t", c.host, err, c.want)
			}
		})
	}
}

func TestDialRefusesFilesThatAreSockets(t *testing.T) {
	t.Parallel()
	path := listen(t, "unix", filepath.Join(t.TempDir(), "socket"))
	_, err := New(Config{Allowed: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}})(t.Context(), "unix", path)
	if refused := (*RefusedError)(nil); !errors.As(err, &refused) {
		t.Errorf("dial = %v, want a refusal", err)
	}
}
