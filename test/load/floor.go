package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"

	authpb "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
)

// floorCommand is the argument with which this program runs as the floor.
const floorCommand = "floor"

// constantText has about the length of a response of /json.
const constantText = `{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":1,"unit":"HOUR"},"durationUntilReset":"1s"}]}`

// constant returns OK for every decision.
type constant struct {
	ratelimit.UnimplementedRateLimitServiceServer
}

// ShouldRateLimit returns the status OK for each descriptor without any check.
func (constant) ShouldRateLimit(
	_ context.Context, r *ratelimit.RateLimitRequest,
) (*ratelimit.RateLimitResponse, error) {
	statuses := make([]*ratelimit.RateLimitResponse_DescriptorStatus, len(r.Descriptors))
	for i := range statuses {
		statuses[i] = &ratelimit.RateLimitResponse_DescriptorStatus{Code: ratelimit.RateLimitResponse_OK}
	}
	return &ratelimit.RateLimitResponse{OverallCode: ratelimit.RateLimitResponse_OK, Statuses: statuses}, nil
}

// emptyCheck allows every call.
type emptyCheck struct {
	authpb.UnimplementedAuthorizationServer
}

// Check returns the status OK, without any check.
func (emptyCheck) Check(context.Context, *authpb.CheckRequest) (*authpb.CheckResponse, error) {
	return &authpb.CheckResponse{Status: &status.Status{}}, nil
}

// sendAllocations sends how often the process has allocated memory.
func sendAllocations(c *fiber.Ctx) error {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return c.SendString(fmt.Sprintf("# Mallocs = %d\n", m.Mallocs))
}

const (
	copiedService = "COPIED_SERVICE" // base URL of the service whose responses the floor copies
	copyPath      = "/copy"
)

// sendCopies returns a handler that sends the bytes and headers of the response that the service
// gave to the first such request: what any Fiber service must do at least.
func sendCopies(base string) fiber.Handler {
	type response struct {
		status int
		header [][2]string
		body   []byte
	}
	var copies sync.Map
	return func(c *fiber.Ctx) error {
		key := strings.Clone(c.OriginalURL()) + " " + c.Get("Accept-Encoding") + " " + c.Get("If-None-Match")
		known, ok := copies.Load(key)
		if !ok {
			req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			req.URI().DisablePathNormalizing = true
			req.SetRequestURI(base + strings.TrimPrefix(c.OriginalURL(), copyPath))
			for _, name := range []string{"Accept-Encoding", "If-None-Match"} {
				if value := c.Get(name); value != "" {
					req.Header.Set(name, value)
				}
			}
			if err := newClient(strings.TrimPrefix(base, "http://")).Do(req, resp); err != nil {
				return fmt.Errorf("copy a response: %w", err)
			}
			made := response{status: resp.StatusCode(), body: resp.Body()}
			resp.Header.VisitAll(func(name, value []byte) {
				if n := string(name); n != "Date" && n != "Content-Length" && n != "Server" {
					made.header = append(made.header, [2]string{n, string(value)})
				}
			})
			known, _ = copies.LoadOrStore(key, made)
		}
		made, _ := known.(response)
		for _, h := range made.header {
			c.Set(h[0], h[1])
		}
		return c.Status(made.status).Send(made.body)
	}
}

// serveFloor serves the floors until it is stopped; with a database, also the floors of records. It
// prints its addresses in the format of the service.
func serveFloor(database string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	grpcListener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	httpListener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := grpc.NewServer()
	ratelimit.RegisterRateLimitServiceServer(server, constant{})
	app := fiber.New(fiber.Config{DisableStartupMessage: true, CaseSensitive: true})
	app.Get("/", func(c *fiber.Ctx) error { return c.JSON(map[string]string{"status": "ok"}) })
	authpb.RegisterAuthorizationServer(server, emptyCheck{})
	app.Get("/debug/pprof/heap", sendAllocations)
	app.Post("/", func(c *fiber.Ctx) error { return c.SendString(constantText) })
	if base := os.Getenv(copiedService); base != "" {
		app.Get(copyPath+"*", sendCopies(base))
	}
	if database != "" {
		if err := mountRecords(app, database); err != nil {
			return err
		}
	}
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(grpcListener) }()
	go func() { failed <- app.Listener(httpListener) }()
	err = json.NewEncoder(os.Stderr).Encode(map[string]string{
		"@message": "tollgate is ready", "api": httpListener.Addr().String(), "grpc": grpcListener.Addr().String(),
	})
	if err != nil {
		return fmt.Errorf("say ready: %w", err)
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}
