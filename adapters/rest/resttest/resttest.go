// Package resttest runs the API listener in tests of its parts. It provides no use cases; each test
// has its own.
package resttest

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest"
)

// shutdownTimeout bounds how long a test waits for the end of the listener.
const shutdownTimeout = 10 * time.Second

// Config returns settings with generous limits and the trusted proxies.
func Config(proxies ...netip.Prefix) rest.Config {
	return rest.Config{
		Host: "127.0.0.1", ReadTimeout: 30 * time.Second, MaxConnections: 100, TrustedProxies: proxies, ClientIPv6Prefix: 64,
	}
}

// Serve runs the server on a free port until the test ends, and returns its URL.
func Serve(t testing.TB, s *rest.Server) (url string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ServeOn(t, s, l)
	return "http://" + l.Addr().String()
}

// ServeOn runs the server on a listener until the test ends. An error of the server fails the test.
func ServeOn(t testing.TB, s *rest.Server, l net.Listener) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
