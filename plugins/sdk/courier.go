package sdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pluginv1 "github.com/tollgate-dev/tollgate/plugins/proto/tollgate/plugin/v1"
)

// Channel is the way a message takes to its recipient.
type Channel string

// The channels that Tollgate knows.
const (
	Email Channel = "email"
	SMS   Channel = "sms"
)

// Kind tells what a message carries.
type Kind uint8

const (
	// OTP is a one-time code, for the plugin to word.
	OTP Kind = iota
	// Notice is a text that Tollgate has worded.
	Notice
)

// Message is what a courier hands over.
type Message struct {
	Kind      Kind
	Channel   Channel // always one of those that the courier named
	Recipient string  // an e-mail address or a telephone number; one line, never empty

	Code      string    // OTP only: the code in clear, a secret
	ExpiresAt time.Time // OTP only: when the code stops to be good, UTC

	Subject string // Notice only: a heading, one line, may be empty
	Text    string // Notice only: may have line breaks, never empty
}

// Courier hands messages over to one channel or more. Its methods are called from many goroutines at once.
type Courier interface {
	// Channels names the channels served: at least one, the same at each call.
	Channels() []Channel
	// Deliver hands m over, and returns nil once the channel has taken it. Any error means that it was not delivered; its text
	// goes to the host's log, where code and recipient are masked. Do not try again on your own once the context has ended.
	Deliver(ctx context.Context, m Message) error
}

// ServeCourier serves c to the host that started this program, and returns when the host is done with it. Call it from main.
// A program that no host started is told so on standard error and exits with status 1.
func ServeCourier(c Courier) { serve(CourierPlugin(c)) }

// CourierPlugin returns the plugin side of c, for those who run their own go-plugin server; [ServeCourier] needs no more.
func CourierPlugin(c Courier) plugin.GRPCPlugin {
	return side{register: func(server *grpc.Server) {
		pluginv1.RegisterPluginServer(server, describer{describe: func() *pluginv1.DescribeResponse {
			return describeCourier(c)
		}})
		pluginv1.RegisterCourierServer(server, courierServer{courier: c})
	}}
}

func describeCourier(c Courier) *pluginv1.DescribeResponse {
	answer := &pluginv1.DescribeResponse{Kind: pluginv1.Kind_KIND_COURIER, Version: versionOf(c)}
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
	courier Courier
}

func (s courierServer) Deliver(ctx context.Context, request *pluginv1.DeliverRequest) (_ *pluginv1.DeliverResponse, err error) {
	defer recovered(&err)
	m, err := s.message(request)
	if err != nil {
		return nil, err
	}
	if err := s.courier.Deliver(ctx, m); err != nil {
		return nil, statusOf(ctx, err)
	}
	return &pluginv1.DeliverResponse{}, nil
}

// message converts and checks a request: a host of another make may send what ours never does.
func (s courierServer) message(request *pluginv1.DeliverRequest) (Message, error) {
	m := Message{Recipient: request.GetRecipient()}
	switch request.GetChannel() {
	case pluginv1.Channel_CHANNEL_EMAIL:
		m.Channel = Email
	case pluginv1.Channel_CHANNEL_SMS:
		m.Channel = SMS
	}
	if !s.serves(m.Channel) {
		return Message{}, status.Error(codes.Unimplemented, fmt.Sprintf("channel %s is not served", request.GetChannel()))
	}
	switch content := request.GetContent().(type) {
	case *pluginv1.DeliverRequest_OneTimeCode:
		m.Kind, m.Code = OTP, content.OneTimeCode.GetCode()
		m.ExpiresAt = content.OneTimeCode.GetExpiresAt().AsTime()
	case *pluginv1.DeliverRequest_Notice:
		m.Kind, m.Subject, m.Text = Notice, content.Notice.GetSubject(), content.Notice.GetText()
	}
	if err := m.complete(); err != nil {
		return Message{}, status.Error(codes.InvalidArgument, err.Error())
	}
	return m, nil
}

func (s courierServer) serves(channel Channel) bool {
	for _, served := range s.courier.Channels() {
		if served == channel {
			return channel != ""
		}
	}
	return false
}

// complete checks that what the plugin may rely on is there.
func (m Message) complete() error {
	switch {
	case m.Recipient == "":
		return errors.New("recipient is missing")
	case m.Kind == OTP && m.Code == "":
		return errors.New("neither code nor notice is given")
	case m.Kind == Notice && m.Text == "":
		return errors.New("text of the notice is missing")
	}
	return nil
}
