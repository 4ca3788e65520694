package ratelimitapi_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/gofiber/fiber/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/test/must"
)

// okService is a service that always returns OK.
type okService struct {
	ratelimitpb.UnimplementedRateLimitServiceServer
}

func (okService) ShouldRateLimit(
	context.Context, *ratelimitpb.RateLimitRequest,
) (*ratelimitpb.RateLimitResponse, error) {
	return &ratelimitpb.RateLimitResponse{OverallCode: okCode}, nil
}

func benchmarkCalls(b *testing.B, client ratelimitpb.RateLimitServiceClient, keys ...string) {
	b.Helper()
	b.ReportAllocs()
	r := newRequest(keys...)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := client.ShouldRateLimit(context.Background(), r); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkGRPC compares a decision with a service that always returns OK.
func BenchmarkGRPC(b *testing.B) {
	b.Run("empty", func(b *testing.B) {
		server := grpc.NewServer()
		ratelimitpb.RegisterRateLimitServiceServer(server, okService{})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must.Succeed(b, err)
		go func() { _ = server.Serve(l) }() // ended by Stop
		b.Cleanup(server.Stop)
		conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		must.Succeed(b, err)
		b.Cleanup(func() { _ = conn.Close() })
		benchmarkCalls(b, ratelimitpb.NewRateLimitServiceClient(conn), "free")
	})
	b.Run("decision", func(b *testing.B) {
		s := openFixture(b, newConfig(), nil)
		s.loadRules(b)
		benchmarkCalls(b, s.newClient(b), "free")
	})
	b.Run("over limit from the local cache", func(b *testing.B) {
		cache, err := memory.NewOverLimit(system.Clock{}, memory.Config{OverLimitBytes: 1 << 20})
		must.Succeed(b, err)
		rules := reload.New(ruleset.Options{}, noopReporter{})
		d, err := decide.New(decide.Config{NearLimitRatio: 0.8}, decide.Ports{
			Rules: rules.Current, Clock: system.Clock{}, OverLimit: cache,
			Counters: memory.NewCounters(system.Clock{}, memory.Config{MaxCounters: 10_000}),
		})
		must.Succeed(b, err)
		s := openFixture(b, newConfig(), d.Decide)
		s.rules = rules
		s.loadRules(b)
		benchmarkCalls(b, s.newClient(b), "zero")
	})
}

func benchmarkPosts(b *testing.B, url string) {
	b.Helper()
	b.ReportAllocs()
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	b.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	const body = `{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]},{"entries":[{"key":"free","value":"v"}]}]}`
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r, err := client.Post(url, "application/json", strings.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, r.Body) // an error makes the next request fail
			_ = r.Body.Close()
		}
	})
}

// BenchmarkHTTP compares a decision with a constant response of Fiber.
func BenchmarkHTTP(b *testing.B) {
	b.Run("constant", func(b *testing.B) {
		app := fiber.New(fiber.Config{DisableStartupMessage: true})
		app.Post("/json", func(c *fiber.Ctx) error { return c.SendString("{}") })
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must.Succeed(b, err)
		go func() { _ = app.Listener(l) }() // ended by Shutdown
		b.Cleanup(func() { _ = app.Shutdown() })
		benchmarkPosts(b, "http://"+l.Addr().String()+"/json")
	})
	b.Run("decision", func(b *testing.B) {
		s := openFixture(b, newConfig(), nil)
		s.loadRules(b)
		benchmarkPosts(b, s.url+"/json")
	})
}
