// Package xds reads the rules of the rate limit service from a management server, over the
// state-of-the-world variant of the aggregated discovery service. Each response is one whole
// configuration, which is acknowledged after it is in force, or refused with the reason. The
// package checks the form of the configuration; core/ratelimit/ruleset checks the rules.
package xds

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Timeouts that detect a server that no longer responds. A connection without traffic is checked
// after pingAfter and closed if there is no response within pingPatience. If the server forbids
// frequent pings, gRPC sends fewer.
const (
	pingAfter       = 30 * time.Second
	pingPatience    = 10 * time.Second
	connectPatience = 10 * time.Second
)

// Source implements rulesource.Source. It is safe for concurrent use.
type Source struct {
	config  Config
	log     *logrus.Entry
	conn    *grpc.ClientConn
	node    *corepb.Node
	headers metadata.MD

	delivered atomic.Pointer[[]ruleset.Source] // the last configuration; otherwise nil yet
}

// Expected implements rulesource.Source.
func (*Source) Expected() bool { return true }

// Open returns the source of a management server. The server may be unavailable, because the
// connection starts with Watch. The cleanup closes the connection. An error names the setting that
// is wrong.
func Open(c Config, log *logrus.Entry) (*Source, func(), error) {
	headers, err := c.parseHeaders()
	if err != nil {
		return nil, nil, err
	}
	described, err := c.Node.parseMetadata()
	if err != nil {
		return nil, nil, err
	}
	secure, err := c.TLS.transportCredentials()
	if err != nil {
		return nil, nil, err
	}
	conn, err := grpc.NewClient(c.Server,
		grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.maxMessageSize())),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingPatience}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: c.RetryInterval, MaxDelay: c.RetryInterval, Multiplier: 1, Jitter: c.Backoff.jitterFactor(),
			},
			MinConnectTimeout: connectPatience,
		}),
	)
	if err != nil {
		return nil, nil, fmt.Errorf("CONFIG_GRPC_XDS_SERVER_URL: %w", err)
	}
	s := &Source{
		config: c, conn: conn, headers: headers,
		log:  log.WithField("management_server", c.Server),
		node: &corepb.Node{Id: c.Node.ID, Metadata: described, UserAgentName: "tollgate"},
	}
	return s, func() { _ = conn.Close() }, nil // an error has no consequence here
}

// Load implements rulesource.Source. It returns the configuration that was delivered last to a
// Watch.
func (s *Source) Load(ctx context.Context) ([]ruleset.Source, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	last := s.delivered.Load()
	if last == nil {
		return nil, fault.New(fault.NotFound, "the management server has delivered no configuration yet")
	}
	return *last, nil
}

// Watch implements rulesource.Source. It waits for a server that is unavailable. If the server
// becomes unavailable later, the delivered configuration stays in force, and the next stream starts
// with its version.
func (s *Source) Watch(ctx context.Context, apply func([]ruleset.Source) error) error {
	w := newWatch(s, apply)
	for {
		ended := w.runStream(ctx)
		if isDone(ctx) {
			return nil
		}
		next := w.backoff.NextBackOff()
		w.logStreamEnd(ended, next)
		if !pause.For(ctx, next) {
			return nil
		}
	}
}

// isDone reports whether a context has ended.
func isDone(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}
