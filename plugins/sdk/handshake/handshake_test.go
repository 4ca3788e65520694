package handshake_test

import (
	"context"
	"testing"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
)

type side struct{}

func (side) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }
func (side) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return "client", nil
}

func TestVersionsHoldGRPCPluginsOnly(t *testing.T) {
	t.Parallel()
	sets := handshake.Versions(side{})
	if both := handshake.Versions(side{}, handshake.Version2); len(sets) != 1 || len(both) != 2 || both[handshake.Version2] == nil {
		t.Fatalf("versions %v and %v, want 1, and 1 and 2", sets, both)
	}
	p := sets[handshake.Version1][handshake.SetName]
	if _, ok := p.(plugin.GRPCPlugin); !ok {
		t.Errorf("%T does not speak gRPC", p)
	}
	if _, err := p.Server(nil); err == nil {
		t.Error("net/rpc is served, want it refused")
	}
	if config := handshake.Config(); config.MagicCookieKey == "" || config.MagicCookieValue == "" ||
		config.ProtocolVersion != 0 {
		t.Errorf("Config() = %+v, want a cookie, and no version outside negotiation", config)
	}
}
