// Package pluginclient is the client side of the plugin protocol: it calls a plugin over an open
// connection, converts the values of the ports to protocol messages and gRPC statuses to faults.
// The plugin host uses it. It does not start or watch processes;
// package pluginhost does.
package pluginclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/ownership"
)

// maxVersion is the size limit, in bytes, of the version in a description.
const maxVersion = 64

// Kind is the port that a plugin implements.
type Kind string

// The kinds of plugin.
const (
	Courier   Kind = "courier"
	Ownership Kind = "ownership"
)

// Description is what a plugin reports about itself.
type Description struct {
	Kind    Kind
	Version string // for people to read; may be empty
	// Channels are the channels of a courier plugin: at least one, sorted, without duplicates.
	Channels []courier.Channel
	// RegistryTypes are the registry types of an ownership plugin: at least one, sorted, without
	// duplicates.
	RegistryTypes []string
}

// Describe returns the description of the plugin at conn. It returns an error if the plugin does
// not answer or its description breaks a rule.
func Describe(ctx context.Context, conn grpc.ClientConnInterface) (Description, error) {
	answer, err := pluginv1.NewPluginClient(conn).Describe(ctx, &pluginv1.DescribeRequest{})
	if err != nil {
		return Description{}, fmt.Errorf("the plugin returned no description: %w", shortenError(err))
	}
	d := Description{Version: printablePrefix(answer.GetVersion(), maxVersion)}
	switch answer.GetKind() {
	case pluginv1.Kind_KIND_COURIER:
		d.Kind = Courier
		d.Channels, err = parseChannels(answer.GetChannels())
	case pluginv1.Kind_KIND_OWNERSHIP:
		d.Kind = Ownership
		d.RegistryTypes, err = parseRegistryTypes(answer.GetRegistryTypes())
	default:
		err = fmt.Errorf("the plugin has the unknown kind %d, it must be courier or ownership", answer.GetKind())
	}
	return d, err
}

// SettingsError is an error that says which setting is wrong, and begins with its name.
type SettingsError string

func (e SettingsError) Error() string { return string(e) }

// Settings returns the settings that the plugin at conn declares. Their names are not checked.
func Settings(ctx context.Context, conn grpc.ClientConnInterface) (list []handshake.Setting, err error) {
	answer, err := pluginv1.NewPluginClient(conn).Settings(ctx, &pluginv1.SettingsRequest{})
	if err != nil {
		return nil, fmt.Errorf("the plugin returned no settings: %w", shortenError(err))
	}
	if n := len(answer.GetSettings()); n > handshake.MaxSettings {
		return nil, fmt.Errorf("the plugin declares %d settings, it must be at most %d", n, handshake.MaxSettings)
	}
	for _, s := range answer.GetSettings() {
		list = append(list, handshake.Setting{Name: s.GetName(), Secret: s.GetSecret()})
	}
	return list, nil
}

// Configure gives the plugin at conn the values of its settings. It returns a [SettingsError] if one
// is wrong.
func Configure(ctx context.Context, conn grpc.ClientConnInterface, values map[string]string) error {
	_, err := pluginv1.NewPluginClient(conn).Configure(ctx, &pluginv1.ConfigureRequest{Values: values})
	switch {
	case status.Code(err) == codes.InvalidArgument:
		return SettingsError(printablePrefix(status.Convert(err).Message(), handshake.MaxErrorText))
	case err != nil:
		return fmt.Errorf("the plugin did not take its settings: %w", shortenError(err))
	}
	return nil
}

// CheckHealth calls the gRPC health service of the plugin at conn. It returns an error for any
// response other than SERVING.
func CheckHealth(ctx context.Context, conn grpc.ClientConnInterface) error {
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{
		Service: handshake.Health,
	})
	if err != nil {
		return fmt.Errorf("health check failed: %w", shortenError(err))
	}
	if got := answer.GetStatus(); got != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("the health check returned %s, it must return SERVING", got)
	}
	return nil
}

func parseChannels(named []pluginv1.Channel) ([]courier.Channel, error) {
	var known []courier.Channel
	for _, channel := range named {
		switch channel {
		case pluginv1.Channel_CHANNEL_EMAIL:
			known = append(known, courier.Email)
		case pluginv1.Channel_CHANNEL_SMS:
			known = append(known, courier.SMS)
		default: // a channel of a later protocol version, which this host does not use
		}
	}
	if len(known) == 0 {
		return nil, errors.New("the courier plugin lists no known channel, it must list email or sms")
	}
	slices.Sort(known)
	return slices.Compact(known), nil
}

func parseRegistryTypes(named []string) ([]string, error) {
	if len(named) == 0 || len(named) > handshake.MaxRegistryTypes {
		return nil, fmt.Errorf("the ownership plugin lists %d registry types, it must list 1 to %d", len(named),
			handshake.MaxRegistryTypes)
	}
	types := slices.Clone(named)
	for _, name := range types {
		if name == "" || name != printablePrefix(name, handshake.MaxRegistryType) {
			return nil,
				fmt.Errorf("the ownership plugin lists the registry type %q, which is empty, too long or not printable",
					printablePrefix(name, handshake.MaxRegistryType))
		}
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

// pluginError is an error that a plugin returned, cut to a limit so that a plugin cannot fill the
// log.
type pluginError struct {
	text  string
	cause error
}

func (f *pluginError) Error() string { return f.text }
func (f *pluginError) Unwrap() error { return f.cause }

// shortenError returns err, a status error, as a short readable error: "Unavailable: sentence". The
// result matches [context.Canceled] and [context.DeadlineExceeded] by errors.Is if the status does.
// Each of secrets is masked in the text.
func shortenError(err error, secrets ...string) error {
	s := status.Convert(err)
	text := s.Message()
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	f := &pluginError{text: printablePrefix(s.Code().String()+": "+text, handshake.MaxErrorText)}
	switch s.Code() {
	case codes.Canceled:
		f.cause = context.Canceled
	case codes.DeadlineExceeded:
		f.cause = context.DeadlineExceeded
	}
	return f
}

// printablePrefix returns at most n bytes of s, cut between two characters, with each character
// that is not printable replaced by a space.
func printablePrefix(s string, n int) string {
	if len(s) > n {
		s = s[:n]
		for len(s) > 0 {
			if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size != 1 {
				break
			}
			s = s[:len(s)-1]
		}
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

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

// maxRefusal is the size limit, in bytes, of the refusal that a publisher reads.
const maxRefusal = 500

// maxRetryDelay is the longest delay that a plugin may request.
const maxRetryDelay = 24 * time.Hour

// CheckOwnership checks c with the ownership plugin at conn, whose description is d. It returns the
// errors of [ownership.Checker].
func CheckOwnership(ctx context.Context, conn grpc.ClientConnInterface, d Description, c ownership.Claim) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if !slices.Contains(d.RegistryTypes, c.RegistryType) {
		return UnsupportedType(c.RegistryType, d.RegistryTypes)
	}
	answer, err := pluginv1.NewOwnershipClient(conn).Check(ctx, &pluginv1.CheckRequest{
		ServerName: c.ServerName, RegistryType: c.RegistryType, RegistryBaseUrl: c.RegistryBaseURL,
		Identifier: c.Identifier, Version: c.Version, FileSha256: c.FileSHA256,
	})
	if status.Code(err) == codes.Unimplemented {
		return UnsupportedType(c.RegistryType, nil)
	}
	if err != nil {
		failed := CheckFailed(shortenError(err)).After(retryDelay(err))
		if host := registryHost(err); host != "" {
			failed.Message = "registry host " + host + " could not be reached, or gave no usable response"
		}
		return failed
	}
	switch verdict := answer.GetVerdict().(type) {
	case *pluginv1.CheckResponse_Owned:
		return nil
	case *pluginv1.CheckResponse_Refused:
		return notOwned(verdict.Refused.GetSentence())
	}
	return CheckFailed(errors.New("the plugin returned neither owned nor refused"))
}

// retryDelay returns the delay before the next try that the plugin requested, at most
// [maxRetryDelay], or 0 if it requested no delay.
func retryDelay(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return min(max(info.GetRetryDelay().AsDuration(), 0), maxRetryDelay)
		}
	}
	return 0
}

// maxHost is the greatest length of the name of a host with its port.
const maxHost = 253 + len(":65535")

// registryHost returns the host that the plugin could not use; empty if it named none.
func registryHost(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetReason() == handshake.ReasonRegistryHost {
			return printablePrefix(info.GetDomain(), maxHost)
		}
	}
	return ""
}

// CheckFailed returns the fault for a check that reached no result. Only the log shows the cause.
func CheckFailed(cause error) *fault.Error {
	return fault.Wrap(fault.Unavailable, "its check failed or took too long", cause).WithCode(ownership.CodeCheckFailed)
}

// UnsupportedType returns the fault for a registry type that no plugin supports. The message lists
// the supported types (contract R-56).
func UnsupportedType(named string, known []string) *fault.Error {
	named = printablePrefix(named, handshake.MaxRegistryType)
	if len(known) == 0 {
		return fault.Newf(fault.Unsupported, "packages of registry type %q cannot be checked, and no type can", named).
			WithCode(ownership.CodeUnsupportedType)
	}
	return fault.Newf(fault.Unsupported, "packages of registry type %q cannot be checked, only those of %s", named,
		strings.Join(known, ", ")).WithCode(ownership.CodeUnsupportedType)
}

func notOwned(sentence string) error {
	sentence = printablePrefix(sentence, maxRefusal)
	if strings.TrimSpace(sentence) == "" {
		sentence = "the package does not claim the server"
	}
	return fault.New(fault.Invalid, sentence).WithCode(ownership.CodeNotOwned)
}
