// Package sdktest runs Tollgate's contract suites against a plugin author's implementation, in the test's own process but over
// the connection and the protocol that the host uses. It does not test the program around the implementation: its main, its
// settings, its files.
//
//	func TestGateway(t *testing.T) {
//		sdktest.RunCourier(t, func(t *testing.T) sdktest.Courier {
//			far := startFakeGateway(t)
//			return sdktest.Courier{Plugin: gateway{url: far.URL}, Delivered: far.Deliveries}
//		})
//	}
package sdktest

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/plugins/handshake"
	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/courier/couriertest"
	"github.com/tollgate-dev/tollgate/ports/ownership"
	"github.com/tollgate-dev/tollgate/ports/ownership/ownershiptest"
)

// Courier is a courier plugin under test.
type Courier struct {
	Plugin sdk.Courier
	// Delivered lists what arrived at the far end since the plugin was opened; nil where that cannot be seen.
	Delivered func() []Delivery
}

// Delivery is what an observer at the far end sees of a message.
type Delivery struct {
	Channel   sdk.Channel
	Recipient string
	Code      string // empty for a notice
	Text      string // of a notice: what the recipient reads; the courier may have put words around Tollgate's
}

// RunCourier runs the courier suite. open returns a fresh plugin with nothing delivered yet, and registers its own cleanup.
func RunCourier(t *testing.T, open func(t *testing.T) Courier) {
	t.Helper()
	couriertest.Run(t, func(t *testing.T) couriertest.Subject {
		t.Helper()
		under := open(t)
		conn, description := connect(t, sdk.CourierPlugin(under.Plugin))
		if description.Kind != pluginclient.Courier {
			t.Fatalf("plugin describes itself as %q, want a courier", description.Kind)
		}
		subject := couriertest.Subject{Courier: courierClient{conn, description}, Channels: description.Channels}
		if under.Delivered != nil {
			subject.Delivered = func() []couriertest.Delivery { return deliveries(under.Delivered()) }
		}
		return subject
	})
}

// Ownership is an ownership plugin under test, before a package registry whose packages are known.
type Ownership struct {
	Plugin sdk.Ownership
	// Owned is borne out by the registry.
	Owned sdk.Claim
	// Refused are claims that it does not bear out, by the reason; each must get a sentence of its own.
	Refused map[string]sdk.Claim
	// Transient is a claim for which the registry gives no verdict; nil where it cannot be made to.
	Transient *sdk.Claim
	// RetryAfter is how long the registry asks to wait in its answer to Transient; 0 where it does not say.
	RetryAfter time.Duration
}

// RunOwnership runs the ownership suite. open returns a fresh plugin and registers its own cleanup.
func RunOwnership(t *testing.T, open func(t *testing.T) Ownership) {
	t.Helper()
	ownershiptest.Run(t, func(t *testing.T) ownershiptest.Subject {
		t.Helper()
		under := open(t)
		conn, description := connect(t, sdk.OwnershipPlugin(under.Plugin))
		if description.Kind != pluginclient.Ownership {
			t.Fatalf("plugin describes itself as %q, want one for package ownership", description.Kind)
		}
		subject := ownershiptest.Subject{
			Checker: checkerClient{conn, description},
			Owned:   ownership.Claim(under.Owned),
			Refused: map[string]ownership.Claim{},

			RetryAfter: under.RetryAfter,
		}
		for reason, claim := range under.Refused {
			subject.Refused[reason] = ownership.Claim(claim)
		}
		if under.Transient != nil {
			transient := ownership.Claim(*under.Transient)
			subject.Transient = &transient
		}
		return subject
	})
}

// connect serves p in this process and returns an open connection to it.
func connect(t *testing.T, p plugin.GRPCPlugin) (grpc.ClientConnInterface, pluginclient.Description) {
	t.Helper()
	client, server := plugin.TestPluginGRPCConn(t, false, handshake.Versions(p)[handshake.Version1])
	t.Cleanup(func() {
		_ = client.Close() // the server goes down with it, and may do so before it answers
		<-server.DoneCh
	})
	if err := pluginclient.Healthy(t.Context(), client.Conn); err != nil {
		t.Fatalf("plugin is not healthy: %v", err)
	}
	description, err := pluginclient.Describe(t.Context(), client.Conn)
	if err != nil {
		t.Fatalf("plugin does not describe itself: %v", err)
	}
	return client.Conn, description
}

type courierClient struct {
	conn        grpc.ClientConnInterface
	description pluginclient.Description
}

func (c courierClient) Deliver(ctx context.Context, m courier.Message) error {
	return pluginclient.Deliver(ctx, c.conn, c.description, m)
}

type checkerClient struct {
	conn        grpc.ClientConnInterface
	description pluginclient.Description
}

func (c checkerClient) Check(ctx context.Context, claim ownership.Claim) error {
	return pluginclient.Check(ctx, c.conn, c.description, claim)
}

func (c checkerClient) Types() []string { return c.description.RegistryTypes }

func deliveries(seen []Delivery) []couriertest.Delivery {
	converted := make([]couriertest.Delivery, len(seen))
	for i, d := range seen {
		converted[i] = couriertest.Delivery{Channel: courier.Channel(d.Channel), Recipient: d.Recipient, Code: d.Code, Text: d.Text}
	}
	return converted
}
