package decideapi

import (
	"context"
	"errors"
	"net"
	"net/netip"

	authpb "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/adapters/decideapi/extmcppb"
	"github.com/tollgate-dev/tollgate/adapters/internal/wire"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Register adds the gRPC services to a server, unless proxies may not ask. The server must have the codec
// of package wire.
func (a *API) Register(s grpc.ServiceRegistrar) {
	if a.config.On {
		e := &envoy{api: a}
		s.RegisterService(wire.Replace(authpb.Authorization_ServiceDesc, "Check", newCheckRequest, e.check), e)
		extmcppb.RegisterExtMcpServer(s, &agentgateway{api: a})
	}
}

// trusts reports whether what a proxy has verified counts: it has a client certificate, or a key. The
// error is that of requireKey if that says nothing about the key.
func (a *API) trusts(ctx context.Context) (bool, error) {
	var from netip.Addr
	if p, ok := peer.FromContext(ctx); ok {
		if t, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(t.State.VerifiedChains) > 0 {
			return true, nil
		}
		if at, ok := p.Addr.(*net.TCPAddr); ok {
			from = at.AddrPort().Addr().Unmap()
		}
	}
	keys := metadata.ValueFromIncomingContext(ctx, headerKey)
	if len(keys) != 1 {
		return false, nil
	}
	err := a.requireKey(ctx, keys[0], from)
	if fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Internal) {
		return false, err
	}
	if err != nil {
		a.ports.Log.WithContext(ctx).WithError(err).Debug("the key of a proxy was refused")
	}
	return err == nil, nil
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
