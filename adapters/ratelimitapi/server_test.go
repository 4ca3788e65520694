package ratelimitapi_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc/credentials/insecure"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/adapters/ratelimitapi"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// gate is a decider whose calls wait until out is closed.
type gate struct{ in, out chan struct{} }

func (g gate) Decide(ctx context.Context, _ *ratelimit.Request) (ratelimit.Decision, error) {
	g.in <- struct{}{}
	select {
	case <-g.out:
		return ratelimit.Decision{Code: ratelimit.OK}, nil
	case <-ctx.Done():
		return ratelimit.Decision{}, ctx.Err()
	}
}

func TestShutdownLetsCallsFinish(t *testing.T) {
	g := gate{make(chan struct{}), make(chan struct{})}
	b := open(t, config(), g)
	answers := make(chan error, 2)
	client := b.client(t)
	go func() {
		_, err := client.ShouldRateLimit(context.Background(), request("k"))
		answers <- err
	}()
	go func() {
		r, err := http.Post(b.url+"/json", "", strings.NewReader(`{"domain":"d"}`))
		if err == nil {
			err = r.Body.Close()
		}
		answers <- err
	}()
	<-g.in
	<-g.in
	done := make(chan error, 1)
	go func() { done <- b.server.Shutdown(context.Background()) }()
	// When connections are refused, the shutdown has begun.
	for _, addr := range []net.Addr{b.server.GRPCAddr(), b.server.HTTPAddr()} {
		for {
			c, err := net.Dial(addr.Network(), addr.String())
			if err != nil {
				break
			}
			_ = c.Close()
		}
	}
	close(g.out)
	for range 2 {
		if err := <-answers; err != nil {
			t.Errorf("a call in flight: %v", err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestShutdownIsBounded(t *testing.T) {
	g := gate{make(chan struct{}), make(chan struct{})}
	b := open(t, config(), g)
	client := b.client(t)
	ended := make(chan error, 1)
	go func() {
		_, err := client.ShouldRateLimit(context.Background(), request("k"))
		ended <- err
	}()
	<-g.in
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.server.Shutdown(ctx); err == nil {
		t.Error("Shutdown returned no error although a call was in flight")
	}
	if err := <-ended; err == nil {
		t.Error("the call was not cut off")
	}
}

// Probes of a port, and pools that connect ahead of need, open connections and ask nothing.
func TestShutdownWaitsForNoSilentConnection(t *testing.T) {
	b := open(t, config(), nil)
	for _, addr := range []net.Addr{b.server.GRPCAddr(), b.server.HTTPAddr()} {
		c, err := net.Dial(addr.Network(), addr.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	b.reachable(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := b.server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// reachable calls both listeners. Earlier connections have been accepted then.
func (b *bench) reachable(t *testing.T) {
	t.Helper()
	b.load(t)
	if _, err := b.client(t).ShouldRateLimit(t.Context(), request("k")); err != nil {
		t.Fatal(err)
	}
	r, err := http.Get(b.url + "/healthcheck")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Body.Close(); err != nil {
		t.Fatal(err)
	}
}

// A connection that stops in the middle of its first words is cut off with the calls in flight.
func TestShutdownIsBoundedForHalfAGreeting(t *testing.T) {
	b := open(t, config(), nil)
	c, err := net.Dial("tcp", b.server.GRPCAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write([]byte("PRI * HTTP/2.0")); err != nil {
		t.Fatal(err)
	}
	b.reachable(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	done := make(chan error, 1)
	go func() { done <- b.server.Shutdown(ctx) }()
	select {
	case err := <-done:
		if err == nil {
			t.Error("Shutdown returned no error although a connection was cut off")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the shutdown waits for half a greeting")
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	c := config()
	c.GRPC.Socket = path
	// A socket that a killed process has left is replaced.
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	b := open(t, c, nil)
	b.load(t)
	client := ratelimitpb.NewRateLimitServiceClient(b.dial(t, insecure.NewCredentials()))
	if _, err := client.ShouldRateLimit(t.Context(), request("k")); err != nil {
		t.Fatal(err)
	}
	refused(t, c, "GRPC_UDS: ") // it is listened on
	c.GRPC.Socket = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(c.GRPC.Socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, c, "GRPC_UDS: ")
}

func refused(t *testing.T, c ratelimitapi.Config, want string) {
	t.Helper()
	_, cleanup, err := ratelimitapi.Open(context.Background(), c, ratelimitapi.Ports{Log: logrus.NewEntry(logrus.New())})
	if err == nil {
		cleanup()
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestTakenPorts(t *testing.T) {
	b := open(t, config(), nil)
	c := config()
	c.GRPC.Port = b.server.GRPCAddr().(*net.TCPAddr).Port
	refused(t, c, "GRPC_HOST and GRPC_PORT: ")
	c = config()
	c.HTTP.Port = b.server.HTTPAddr().(*net.TCPAddr).Port
	refused(t, c, "RATELIMIT_HTTP_HOST and RATELIMIT_HTTP_PORT: ")
}

func TestValidate(t *testing.T) {
	if err := config().Validate(); err != nil {
		t.Error(err)
	}
	tests := map[string]func(*ratelimitapi.Config){
		"GRPC_PORT":                     func(c *ratelimitapi.Config) { c.GRPC.Port = 65536 },
		"RATELIMIT_HTTP_PORT":           func(c *ratelimitapi.Config) { c.HTTP.Port = -1 },
		"GRPC_MAX_CONNECTION_AGE":       func(c *ratelimitapi.Config) { c.GRPC.MaxConnectionAge = -1 },
		"GRPC_MAX_CONNECTION_AGE_GRACE": func(c *ratelimitapi.Config) { c.GRPC.MaxConnectionAgeGrace = -1 },
		"LIMIT_LIMIT_HEADER":            func(c *ratelimitapi.Config) { c.Headers.Limit = "a b" },
		"LIMIT_REMAINING_HEADER":        func(c *ratelimitapi.Config) { c.Headers.Remaining = "" },
		"LIMIT_RESET_HEADER":            func(c *ratelimitapi.Config) { c.Headers.Reset = "a\n" },
		"GRPC_SERVER_TLS_CERT":          func(c *ratelimitapi.Config) { c.TLS.Enabled = true },
		"GRPC_SERVER_TLS_KEY":           func(c *ratelimitapi.Config) { c.TLS.Enabled, c.TLS.Cert = true, "x" },
		"GRPC_CLIENT_TLS_SAN":           func(c *ratelimitapi.Config) { c.TLS.Enabled, c.TLS.ClientSAN = true, "x" },
	}
	for variable, change := range tests {
		c := config()
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), variable) {
			t.Errorf("%s: %v", variable, err)
		}
	}
}
