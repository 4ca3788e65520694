package pluginclient

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
	"github.com/tollgate-dev/tollgate/ports/courier"
)

// Deliver sends m with the courier plugin at conn, whose description is d. It returns the errors of
// [courier.Courier].
func Deliver(ctx context.Context, conn grpc.ClientConnInterface, d Description, m courier.Message) error {
	if err := m.Validate(); err != nil {
		return err
	}
	if !slices.Contains(d.Channels, m.Channel) {
		return unsupportedChannel(m.Channel)
	}
	_, err := pluginv1.NewCourierClient(conn).Deliver(ctx, deliverRequest(m))
	if err == nil {
		return nil
	}
	if status.Code(err) == codes.Unimplemented {
		return unsupportedChannel(m.Channel)
	}
	return DeliveryFailed(shortenError(err, m.Code, m.Link, m.Recipient))
}

// DeliveryFailed returns the fault for a message that was not delivered. Only the log shows the
// cause.
func DeliveryFailed(cause error) *fault.Error {
	return fault.Wrap(fault.Unavailable, "the message could not be delivered, try again later", cause).
		WithCode(courier.CodeDeliveryFailed)
}

func unsupportedChannel(channel courier.Channel) error {
	return fault.Newf(fault.Unsupported, "the courier plugin does not support the channel %q",
		printablePrefix(string(channel), handshake.MaxRegistryType)).WithCode(courier.CodeUnsupportedChannel)
}

func deliverRequest(m courier.Message) *pluginv1.DeliverRequest {
	request := &pluginv1.DeliverRequest{Recipient: m.Recipient}
	switch m.Channel {
	case courier.Email:
		request.Channel = pluginv1.Channel_CHANNEL_EMAIL
	case courier.SMS:
		request.Channel = pluginv1.Channel_CHANNEL_SMS
	}
	if m.Kind == courier.Notice {
		request.Content = &pluginv1.DeliverRequest_Notice{Notice: &pluginv1.Notice{
			Subject: m.Subject, Text: m.Text, Link: m.Link,
		}}
		return request
	}
	request.Content = &pluginv1.DeliverRequest_OneTimeCode{OneTimeCode: &pluginv1.OneTimeCode{
		Code: m.Code, ExpiresAt: timestamppb.New(m.ExpiresAt),
	}}
	return request
}
