package decideapi

import (
	"context"
	"errors"

	authpb "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/adapters/decideapi/extmcppb"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Register adds the gRPC services to a server, unless proxies may not ask.
func (a *API) Register(s grpc.ServiceRegistrar) {
	if a.config.On {
		authpb.RegisterAuthorizationServer(s, &envoy{api: a})
		extmcppb.RegisterExtMcpServer(s, &agentgateway{api: a})
	}
}

// grpcError returns the status of a call that was not decided. Proxies have a setting for what becomes
// of a request then.
func (a *API) grpcError(ctx context.Context, err error) error {
	log := a.ports.Log.WithContext(ctx).WithError(err)
	switch {
	case errors.Is(err, context.Canceled):
		return grpcstatus.Error(codes.Canceled, "the call was canceled")
	case errors.Is(err, context.DeadlineExceeded):
		return grpcstatus.Error(codes.DeadlineExceeded, "the call's deadline has passed")
	case fault.Is(err, fault.Unavailable):
		log.Debug("a call cannot be decided now")
		return grpcstatus.Error(codes.Unavailable, fault.PublicMessage(err))
	}
	log.Error("a call cannot be decided")
	return grpcstatus.Error(codes.Internal, "internal error")
}
