package ratelimitapi

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
	"github.com/tollgate-dev/tollgate/adapters/internal/wire"
)

// The maximum sizes of a call.
const (
	maxBody    = 1 << 20
	maxMessage = 4 << 20 // of gRPC: the default of the library, as in the Envoy rate limit service
	maxHeader  = 16 << 10
	maxStreams = 10_000 // per connection
)

// workers is the number of goroutines that serve calls and keep their grown stacks. It is much
// larger than the number of cores, because calls wait for the counter store. Further calls get a
// new goroutine with a small stack; growing it costs a tenth of the call.
const workers = 64

func newGRPC(c Config, s *service, d Ports) (*grpc.Server, error) {
	guard := panicGuard{s}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.NumStreamWorkers(workers),
		grpc.ForceServerCodecV2(wire.NewCodec()),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge:      c.GRPC.MaxConnectionAge, // the library adds a jitter of 10%
			MaxConnectionAgeGrace: c.GRPC.MaxConnectionAgeGrace,
		}),
		grpc.StreamInterceptor(guard.interceptStream),
	}
	if d.Tracing.isEnabled() {
		options = append(options, grpc.ChainUnaryInterceptor(d.Tracing.interceptUnary, guard.interceptUnary))
	} else {
		options = append(options, grpc.UnaryInterceptor(guard.interceptUnary))
	}
	if c.TLS.Enabled {
		identity, err := c.TLS.followFiles(s.log)
		if err != nil {
			return nil, err
		}
		tlsfiles.ShowExpiry(d.Metrics, "grpc", identity)
		options = append(options, grpc.Creds(credentials.NewTLS(identity)))
	}
	server := grpc.NewServer(options...)
	s.register(server)
	healthpb.RegisterHealthServer(server, &healthService{health: d.Health})
	if d.Register != nil {
		d.Register(server)
	}
	reflection.Register(server)
	return server, nil
}

// panicGuard turns panics into errors.
type panicGuard struct{ service *service }

func (g panicGuard) interceptUnary(
	ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (response any, err error) {
	defer g.recoverPanic(ctx, &err)
	return next(ctx, request)
}

func (g panicGuard) interceptStream(
	server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler,
) (err error) {
	defer g.recoverPanic(stream.Context(), &err)
	return next(server, stream)
}

func (g panicGuard) recoverPanic(ctx context.Context, err *error) {
	if p := recover(); p != nil {
		logPanic(g.service.grpcLog(ctx), p)
		*err = grpcstatus.Error(codes.Internal, "internal error")
	}
}

func logPanic(log *logrus.Entry, p any) {
	log.WithField("stack", string(debug.Stack())).Error("a call panicked: " + fmt.Sprint(p))
}
