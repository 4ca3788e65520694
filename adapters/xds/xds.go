// Package xds reads the rules of the rate limit service from a management
// server, by aggregated discovery in its state-of-the-world form: each response
// is one whole configuration, which is acknowledged once it is in force, or
// refused with the reason. It checks the form of what it is sent; what it says
// the core checks.
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

	"github.com/tollgate-dev/tollgate/adapters/pause"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// How a server that has gone without a word is noticed: a silent connection is
// tried after pingAfter and given up when no answer comes within pingPatience.
// Where a server forbids so many pings, gRPC makes them rarer by itself.
const (
	pingAfter       = 30 * time.Second
	pingPatience    = 10 * time.Second
	connectPatience = 10 * time.Second
)

// Source is a rulesource.Source. It is safe for concurrent use.
type Source struct {
	config  Config
	log     *logrus.Entry
	conn    *grpc.ClientConn
	node    *corepb.Node
	headers metadata.MD

	delivered atomic.Pointer[[]ruleset.Source] // last; nil for none yet
}

// Open returns the source of a management server, which need not be there yet:
// nothing is connected before Watch. The cleanup closes the connection. An
// error names the setting that is wrong.
func Open(c Config, log *logrus.Entry) (*Source, func(), error) {
	headers, err := c.headers()
	if err != nil {
		return nil, nil, err
	}
	described, err := c.Node.metadata()
	if err != nil {
		return nil, nil, err
	}
	secure, err := c.TLS.credentials()
	if err != nil {
		return nil, nil, err
	}
	conn, err := grpc.NewClient(c.Server,
		grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.maxMessage())),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingPatience}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: c.RetryInterval, MaxDelay: c.RetryInterval, Multiplier: 1, Jitter: c.Backoff.factor(),
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
	return s, func() { _ = conn.Close() }, nil // nothing is left to be told
}

// Load implements rulesource.Source: the present configuration is the one that
// was delivered last, to a Watch.
func (s *Source) Load(ctx context.Context) ([]ruleset.Source, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	last := s.delivered.Load()
	if last == nil {
		return nil, fault.New(fault.NotFound, "", "the management server has delivered no configuration yet")
	}
	return *last, nil
}

// Watch implements rulesource.Source. A server that is away is awaited; one that
// goes away leaves what was delivered, and is told at the next stream which
// version that is.
func (s *Source) Watch(ctx context.Context, apply func([]ruleset.Source) error) error {
	w := newWatch(s, apply)
	for {
		ended := w.stream(ctx)
		if done(ctx) {
			return nil
		}
		next := w.pause.NextBackOff()
		w.sayEnded(ended, next)
		if !pause.For(ctx, next) {
			return nil
		}
	}
}

func done(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}
