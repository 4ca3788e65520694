// Package sdktest runs Tollgate's contract tests against a plugin author's implementation, in the
// process of the test but over the connection and the protocol of the host. It does not test the
// rest of the program: its main function, its settings, its files.
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
	// Delivered must return the messages that have arrived at the destination since the plugin was
	// opened. Leave it nil if the test cannot observe the destination.
	Delivered func() []Delivery
}

// Delivery is a message as it arrived at the destination.
type Delivery struct {
	Channel   sdk.Channel
	Recipient string
	Code      string // empty for a notice
	Text      string // of a notice: the text that the recipient reads; the courier may have added text around Tollgate's
}

// RunCourier runs the contract tests for couriers. open must return a new plugin that has delivered
// nothing, and register its own cleanup.
func RunCourier(t *testing.T, open func(t *testing.T) Courier) {
	t.Helper()
	couriertest.Run(t, func(t *testing.T) couriertest.Subject {
		t.Helper()
		under := open(t)
		conn, description := connectPlugin(t, sdk.CourierPlugin(under.Plugin))
		if description.Kind != pluginclient.Courier {
			t.Fatalf("the plugin has the kind %q, want courier", description.Kind)
		}
		subject := couriertest.Subject{Courier: courierClient{conn, description}, Channels: description.Channels}
		if under.Delivered != nil {
			subject.Delivered = func() []couriertest.Delivery { return convertDeliveries(under.Delivered()) }
		}
		return subject
	})
}

// Ownership is an ownership plugin under test, with a package registry whose packages are known.
type Ownership struct {
	Plugin sdk.Ownership
	// Owned is a claim that the registry confirms.
	Owned sdk.Claim
	// Refused are claims that the registry does not confirm, by the reason. The plugin must refuse
	// each of them with a different sentence.
	Refused map[string]sdk.Claim
	// Transient is a claim whose check the registry cannot complete. Leave it nil if the test has
	// no such claim.
	Transient *sdk.Claim
	// RetryAfter is the delay that the registry requests in its response to Transient; 0 if it
	// requests no delay.
	RetryAfter time.Duration
}

// RunOwnership runs the contract tests for ownership plugins. open must return a new plugin and
// register its own cleanup.
func RunOwnership(t *testing.T, open func(t *testing.T) Ownership) {
	t.Helper()
	ownershiptest.Run(t, func(t *testing.T) ownershiptest.Subject {
		t.Helper()
		under := open(t)
		conn, description := connectPlugin(t, sdk.OwnershipPlugin(under.Plugin))
		if description.Kind != pluginclient.Ownership {
			t.Fatalf("the plugin has the kind %q, want ownership", description.Kind)
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

// connectPlugin serves p in this process and returns a connection to it and its description.
func connectPlugin(t *testing.T, p plugin.GRPCPlugin) (grpc.ClientConnInterface, pluginclient.Description) {
	t.Helper()
	client, server := plugin.TestPluginGRPCConn(t, false, handshake.Versions(p)[handshake.Version1])
	t.Cleanup(func() {
		_ = client.Close() // this stops the server, perhaps before it responds
		<-server.DoneCh
	})
	if err := pluginclient.CheckHealth(t.Context(), client.Conn); err != nil {
		t.Fatalf("the plugin is not healthy: %v", err)
	}
	description, err := pluginclient.Describe(t.Context(), client.Conn)
	if err != nil {
		t.Fatalf("the plugin returns no valid description: %v", err)
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
	return pluginclient.CheckOwnership(ctx, c.conn, c.description, claim)
}

func (c checkerClient) Types() []string { return c.description.RegistryTypes }

func convertDeliveries(seen []Delivery) []couriertest.Delivery {
	converted := make([]couriertest.Delivery, len(seen))
	for i, d := range seen {
		converted[i] = couriertest.Delivery{Channel: courier.Channel(d.Channel), Recipient: d.Recipient, Code: d.Code, Text: d.Text}
	}
	return converted
}
