package ratelimitapi

import (
	"context"
	"fmt"
	"net"
	"runtime/debug"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
	"github.com/tollgate-dev/tollgate/adapters/internal/wire"
	"github.com/tollgate-dev/tollgate/adapters/requestbody"
)

// The maximum sizes of a call.
const (
	maxBody    = 1 << 20
	maxMessage = 1 << 20 // of gRPC
	maxHeader  = 16 << 10
	maxStreams = 1000 // per connection
)

// Flow control windows in bytes. They are fixed: the library would enlarge that of a stream up to 16 MiB, which a client
// could then send after its message.
const (
	streamWindow = 64 << 10 // the library enlarges it by the rest of a message that it reads
	connWindow   = 1 << 20
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
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
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
	secured := insecure.NewCredentials()
	if c.TLS.Enabled {
		identity, err := c.TLS.followFiles(s.log)
		if err != nil {
			return nil, err
		}
		tlsfiles.ShowExpiry(d.Metrics, "grpc", identity)
		secured = credentials.NewTLS(identity)
	}
	server := grpc.NewServer(append(options, grpc.Creds(boundedMessages{secured, d.Bodies}))...)
	s.register(server)
	healthpb.RegisterHealthServer(server, &healthService{health: d.Health})
	if d.Register != nil {
		d.Register(server)
	}
	reflection.Register(server)
	return server, nil
}

// boundedMessages are credentials whose connections have unfinished messages within a budget.
type boundedMessages struct {
	credentials.TransportCredentials
	budget *requestbody.Budget
}

// ServerHandshake implements [credentials.TransportCredentials].
func (b boundedMessages) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, info, err := b.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // the library knows its errors
	}
	return b.budget.BoundMessages(c), info, nil
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
