package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
)

// Channel is the medium by which a message reaches its recipient.
type Channel string

// The channels of Tollgate.
const (
	Email Channel = "email"
	SMS   Channel = "sms"
)

// Kind says whether a message is a code or a notice.
type Kind uint8

const (
	// OTP is a one-time code; the plugin writes the text around it.
	OTP Kind = iota
	// Notice is a text that Tollgate has written.
	Notice
)

// String returns the name of the kind: otp or notice.
func (k Kind) String() string {
	switch k {
	case OTP:
		return "otp"
	case Notice:
		return "notice"
	default:
		return fmt.Sprintf("kind %d", uint8(k))
	}
}

// Message is a message to deliver.
type Message struct {
	Kind      Kind
	Channel   Channel // one of the courier's channels
	Recipient string  // an e-mail address or a telephone number: one line, not empty

	Code      string    // OTP only: the code, unencrypted and secret
	ExpiresAt time.Time // OTP only: when the code expires, UTC

	Subject string // Notice only: one line, may be empty
	Text    string // Notice only: may have line breaks, not empty
	// Link is the link in Text that lets the person set a password; otherwise empty. With it, a
	// notice is as secret as a code.
	Link string
}

// Courier delivers messages over one or more channels. All methods must be safe for concurrent use.
type Courier interface {
	// Channels must return the channels that the courier supports: at least one, and the same at
	// each call.
	Channels() []Channel
	// Deliver must send m, and return nil once the channel has accepted it and an error if m was
	// not delivered. The host logs the error with the code and the recipient masked. Deliver must
	// not try again after ctx has ended.
	Deliver(ctx context.Context, m Message) error
}

// ServeCourier serves c to the host that started this program, and returns when the host stops the
// plugin. Call it from main. If no host started the program, ServeCourier writes that to standard
// error and exits with status 1.
func ServeCourier(c Courier) { servePlugin(handshake.Versions(CourierPlugin(c))) }

// RunCourier is [ServeCourier] for a main function that first has to open its plugin. If err is not
// nil, it writes err to standard error, which the host logs, and returns 1. Otherwise it serves c
// and returns 0. Pass the result to [os.Exit].
func RunCourier(c Courier, err error) (exitStatus int) {
	return runPlugin(err, func() { ServeCourier(c) })
}

// CourierPlugin returns c as a go-plugin plugin, for programs that run their own go-plugin server.
// [ServeCourier] is enough for all others.
func CourierPlugin(c Courier) plugin.GRPCPlugin {
	return courierPlugin(func() Courier { return c }, nil, nil)
}

func courierPlugin(current func() Courier, settings []Setting, configure func(map[string]string) error) grpcPlugin {
	return grpcPlugin{register: func(server *grpc.Server) {
		pluginv1.RegisterPluginServer(server, describer{
			describe: func() *pluginv1.DescribeResponse { return describeCourier(current()) },
			settings: settings, configure: configure,
		})
		pluginv1.RegisterCourierServer(server, courierServer{courier: current})
	}}
}

func describeCourier(c Courier) *pluginv1.DescribeResponse {
	answer := &pluginv1.DescribeResponse{Kind: pluginv1.Kind_KIND_COURIER, Version: pluginVersion(c)}
	for _, channel := range c.Channels() {
		switch channel {
		case Email:
			answer.Channels = append(answer.Channels, pluginv1.Channel_CHANNEL_EMAIL)
		case SMS:
			answer.Channels = append(answer.Channels, pluginv1.Channel_CHANNEL_SMS)
		}
	}
	return answer
}

type courierServer struct {
	pluginv1.UnimplementedCourierServer
	courier func() Courier
}

func (s courierServer) Deliver(
	ctx context.Context, request *pluginv1.DeliverRequest,
) (_ *pluginv1.DeliverResponse, err error) {
	defer recoverPanic(&err)
	m, err := s.parseMessage(request)
	if err != nil {
		return nil, err
	}
	if err := s.courier().Deliver(ctx, m); err != nil {
		return nil, errorStatus(ctx, err)
	}
	return &pluginv1.DeliverResponse{}, nil
}

// parseMessage converts request to a message. It returns an error for a request that Tollgate's
// host does not send, because another host may send it.
func (s courierServer) parseMessage(request *pluginv1.DeliverRequest) (Message, error) {
	m := Message{Recipient: request.GetRecipient()}
	switch request.GetChannel() {
	case pluginv1.Channel_CHANNEL_EMAIL:
		m.Channel = Email
	case pluginv1.Channel_CHANNEL_SMS:
		m.Channel = SMS
	}
	if !s.servesChannel(m.Channel) {
		return Message{}, status.Error(codes.Unimplemented,
			fmt.Sprintf("channel %s is not supported", request.GetChannel()))
	}
	switch content := request.GetContent().(type) {
	case *pluginv1.DeliverRequest_OneTimeCode:
		m.Kind, m.Code = OTP, content.OneTimeCode.GetCode()
		m.ExpiresAt = content.OneTimeCode.GetExpiresAt().AsTime()
	case *pluginv1.DeliverRequest_Notice:
		m.Kind, m.Subject, m.Text = Notice, content.Notice.GetSubject(), content.Notice.GetText()
		m.Link = content.Notice.GetLink()
	}
	if err := m.checkComplete(); err != nil {
		return Message{}, status.Error(codes.InvalidArgument, err.Error())
	}
	return m, nil
}

func (s courierServer) servesChannel(channel Channel) bool {
	return channel != "" && slices.Contains(s.courier().Channels(), channel)
}

// checkComplete returns an error if a field that the plugin may rely on is empty.
func (m Message) checkComplete() error {
	switch {
	case m.Recipient == "":
		return errors.New("the recipient is missing")
	case m.Kind == OTP && m.Code == "":
		return errors.New("the message has neither a code nor a notice")
	case m.Kind == Notice && m.Text == "":
		return errors.New("the notice has no text")
	}
	return nil
}
