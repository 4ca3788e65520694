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
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
)

// host calls a plugin over the protocol, as Tollgate's plugin host does.
type host struct {
	conn        grpc.ClientConnInterface
	description *pluginv1.DescribeResponse
}

// connectPlugin serves p in this process, and fails the test unless it is healthy and describes
// itself as a plugin of the kind.
func connectPlugin(t *testing.T, p plugin.GRPCPlugin, kind pluginv1.Kind) host {
	t.Helper()
	client, server := plugin.TestPluginGRPCConn(t, false, handshake.Versions(p)[handshake.Version1])
	t.Cleanup(func() {
		_ = client.Close() // this stops the server, perhaps before it responds
		<-server.DoneCh
	})
	health, err := grpc_health_v1.NewHealthClient(client.Conn).
		Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: handshake.Health})
	if err != nil || health.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Fatalf("the plugin is not healthy: %s, %v", health.GetStatus(), err)
	}
	description, err := pluginv1.NewPluginClient(client.Conn).Describe(t.Context(), &pluginv1.DescribeRequest{})
	if err != nil {
		t.Fatalf("the plugin returns no description: %v", err)
	}
	if description.GetKind() != kind {
		t.Fatalf("the plugin has the kind %s, want %s", description.GetKind(), kind)
	}
	return host{client.Conn, description}
}

// channels returns the channels of the courier's description, each once.
func (h host) channels() []sdk.Channel {
	var all []sdk.Channel
	for channel, sent := range sentChannels {
		if slices.Contains(h.description.GetChannels(), sent) {
			all = append(all, channel)
		}
	}
	slices.Sort(all)
	return all
}

var sentChannels = map[sdk.Channel]pluginv1.Channel{
	sdk.Email: pluginv1.Channel_CHANNEL_EMAIL, sdk.SMS: pluginv1.Channel_CHANNEL_SMS,
}

// deliver returns the status of the delivery of m.
func (h host) deliver(ctx context.Context, m sdk.Message) error {
	request := &pluginv1.DeliverRequest{Channel: sentChannels[m.Channel], Recipient: m.Recipient}
	if m.Kind == sdk.Notice {
		request.Content = &pluginv1.DeliverRequest_Notice{Notice: &pluginv1.Notice{Subject: m.Subject, Text: m.Text}}
	} else {
		request.Content = &pluginv1.DeliverRequest_OneTimeCode{
			OneTimeCode: &pluginv1.OneTimeCode{Code: m.Code, ExpiresAt: timestamppb.New(m.ExpiresAt)},
		}
	}
	_, err := pluginv1.NewCourierClient(h.conn).Deliver(ctx, request)
	return err
}

// refusedError is the refusal of a claim, whose text the publisher reads.
type refusedError struct{ sentence string }

func (e *refusedError) Error() string { return e.sentence }

// check returns nil if the plugin confirms the claim, a *refusedError if it refuses it, and the
// status of the call otherwise.
func (h host) check(ctx context.Context, c sdk.Claim) error {
	answer, err := pluginv1.NewOwnershipClient(h.conn).Check(ctx, &pluginv1.CheckRequest{
		ServerName: c.ServerName, RegistryType: c.RegistryType, RegistryBaseUrl: c.RegistryBaseURL,
		Identifier: c.Identifier, Version: c.Version, FileSha256: c.FileSHA256,
	})
	if err != nil {
		return err
	}
	if refused := answer.GetRefused(); refused != nil {
		return &refusedError{refused.GetSentence()}
	}
	return nil
}

// retryDelay returns the delay before the next try that the plugin requested, or 0.
func retryDelay(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}
