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
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// blockingDecider is a decider whose calls wait until release is closed.
type blockingDecider struct{ entered, release chan struct{} }

func (g blockingDecider) Decide(ctx context.Context, _ *ratelimit.Request) (ratelimit.Decision, error) {
	g.entered <- struct{}{}
	select {
	case <-g.release:
		return ratelimit.Decision{Code: ratelimit.OK}, nil
	case <-ctx.Done():
		return ratelimit.Decision{}, ctx.Err()
	}
}

func TestShutdownLetsCallsFinish(t *testing.T) {
	g := blockingDecider{make(chan struct{}), make(chan struct{})}
	b := openFixture(t, newConfig(), g.Decide)
	answers := make(chan error, 2)
	client := b.newClient(t)
	go func() {
		_, err := client.ShouldRateLimit(context.Background(), newRequest("k"))
		answers <- err
	}()
	go func() {
		r, err := http.Post(b.url+"/json", "", strings.NewReader(`{"domain":"d"}`))
		if err == nil {
			err = r.Body.Close()
		}
		answers <- err
	}()
	<-g.entered
	<-g.entered
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
	close(g.release)
	for range 2 {
		if err := <-answers; err != nil {
			t.Errorf("a call in flight: %v", err)
		}
	}
	must.Succeed(t, <-done)
}

func TestShutdownIsBounded(t *testing.T) {
	g := blockingDecider{make(chan struct{}), make(chan struct{})}
	b := openFixture(t, newConfig(), g.Decide)
	client := b.newClient(t)
	ended := make(chan error, 1)
	go func() {
		_, err := client.ShouldRateLimit(context.Background(), newRequest("k"))
		ended <- err
	}()
	<-g.entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.server.Shutdown(ctx); err == nil {
		t.Error("Shutdown returned no error although a call was in flight")
	}
	if err := <-ended; err == nil {
		t.Error("the call succeeded, want it canceled")
	}
}

// TestShutdownIgnoresUnusedConnections checks that Shutdown does not wait for connections without a
// request. Port probes and connection pools open them.
func TestShutdownIgnoresUnusedConnections(t *testing.T) {
	b := openFixture(t, newConfig(), nil)
	for _, addr := range []net.Addr{b.server.GRPCAddr(), b.server.HTTPAddr()} {
		c, err := net.Dial(addr.Network(), addr.String())
		must.Succeed(t, err)
		t.Cleanup(func() { _ = c.Close() })
	}
	b.callBothListeners(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	must.Succeed(t, b.server.Shutdown(ctx))
}

// callBothListeners calls both listeners. When it returns, all earlier connections have been
// accepted.
func (b *fixture) callBothListeners(t *testing.T) {
	t.Helper()
	b.loadRules(t)
	if _, err := b.newClient(t).ShouldRateLimit(t.Context(), newRequest("k")); err != nil {
		t.Fatal(err)
	}
	r, err := http.Get(b.url + "/healthcheck")
	must.Succeed(t, err)
	must.Succeed(t, r.Body.Close())
}

// TestShutdownClosesIncompletePreface checks that Shutdown closes a connection that has sent only a
// part of the HTTP/2 preface.
func TestShutdownClosesIncompletePreface(t *testing.T) {
	b := openFixture(t, newConfig(), nil)
	c, err := net.Dial("tcp", b.server.GRPCAddr().String())
	must.Succeed(t, err)
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write([]byte("PRI * HTTP/2.0")); err != nil {
		t.Fatal(err)
	}
	b.callBothListeners(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	done := make(chan error, 1)
	go func() { done <- b.server.Shutdown(ctx) }()
	if await.Receive(t, "the end of Shutdown, not the rest of the preface", done) == nil {
		t.Error("Shutdown returned no error although it closed an open connection")
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	c := newConfig()
	c.GRPC.Socket = path
	// The socket of a killed process is replaced.
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	must.Succeed(t, err)
	old.SetUnlinkOnClose(false)
	must.Succeed(t, old.Close())
	b := openFixture(t, c, nil)
	b.loadRules(t)
	client := ratelimitpb.NewRateLimitServiceClient(b.dialGRPC(t, insecure.NewCredentials()))
	if _, err := client.ShouldRateLimit(t.Context(), newRequest("k")); err != nil {
		t.Fatal(err)
	}
	wantOpenError(t, c, "GRPC_UDS: ") // the server listens on it
	c.GRPC.Socket = filepath.Join(t.TempDir(), "file")
	must.Succeed(t, os.WriteFile(c.GRPC.Socket, nil, 0o600))
	wantOpenError(t, c, "GRPC_UDS: ")
}

func wantOpenError(t *testing.T, c ratelimitapi.Config, want string) {
	t.Helper()
	_, cleanup, err := ratelimitapi.Open(context.Background(), c, ratelimitapi.Ports{
		Log: logrus.NewEntry(logrus.New()),
	})
	if err == nil {
		cleanup()
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestPortsInUse(t *testing.T) {
	b := openFixture(t, newConfig(), nil)
	c := newConfig()
	c.GRPC.Port = b.server.GRPCAddr().(*net.TCPAddr).Port
	wantOpenError(t, c, "GRPC_HOST and GRPC_PORT: ")
	c = newConfig()
	c.HTTP.Port = b.server.HTTPAddr().(*net.TCPAddr).Port
	wantOpenError(t, c, "RATELIMIT_HTTP_HOST and RATELIMIT_HTTP_PORT: ")
}

func TestValidate(t *testing.T) {
	must.Succeed(t, newConfig().Validate())
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
		c := newConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), variable) {
			t.Errorf("%s: %v", variable, err)
		}
	}
}
