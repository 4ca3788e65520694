// Package resttest runs the API listener for the tests of its parts, as the service runs it. What the parts stand on, and what is
// asked of them, each test brings itself.
package resttest

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest"
)

// patience is how long a test waits for an end; it is no measure of how soon.
const patience = 10 * time.Second

// Config returns settings that stand in no test's way, with the proxies trusted.
func Config(proxies ...netip.Prefix) rest.Config {
	return rest.Config{
		Host: "127.0.0.1", ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second,
		MaxConnections: 100, TrustedProxies: proxies, ClientIPv6Prefix: 64,
	}
}

// Serve has the server answer on a free port until the test ends, and returns its URL.
func Serve(t testing.TB, s *rest.Server) (url string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ServeOn(t, s, l)
	return "http://" + l.Addr().String()
}

// ServeOn has the server answer on a listener until the test ends. One that does not end well fails the test.
func ServeOn(t testing.TB, s *rest.Server, l net.Listener) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
