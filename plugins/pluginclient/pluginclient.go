// Package pluginclient calls a plugin over an open connection and turns port values into protocol messages and statuses into faults.
// The host and the SDK's contract runner share it. It starts no process and watches none: package pluginhost does.
package pluginclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/plugins/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/proto/tollgate/plugin/v1"
	"github.com/tollgate-dev/tollgate/ports/courier"
)

// Bounds of a description.
const (
	maxVersion       = 64
	maxRegistryTypes = 64
	maxRegistryType  = 64
)

// Kind names the port that a plugin answers.
type Kind string

// The kinds of plugin.
const (
	Courier   Kind = "courier"
	Ownership Kind = "ownership"
)

// Description is what a plugin says of itself.
type Description struct {
	Kind    Kind
	Version string // for people; may be empty
	// Channels of a courier, at least one.
	Channels []courier.Channel
	// RegistryTypes of an ownership plugin: at least one, sorted, without duplicates.
	RegistryTypes []string
}

// Describe asks the plugin behind conn what it is. A description that breaks a rule is an error.
func Describe(ctx context.Context, conn grpc.ClientConnInterface) (Description, error) {
	answer, err := pluginv1.NewPluginClient(conn).Describe(ctx, &pluginv1.DescribeRequest{})
	if err != nil {
		return Description{}, fmt.Errorf("plugin does not describe itself: %w", bounded(err))
	}
	d := Description{Version: clean(answer.GetVersion(), maxVersion)}
	switch answer.GetKind() {
	case pluginv1.Kind_KIND_COURIER:
		d.Kind = Courier
		d.Channels, err = channels(answer.GetChannels())
	case pluginv1.Kind_KIND_OWNERSHIP:
		d.Kind = Ownership
		d.RegistryTypes, err = registryTypes(answer.GetRegistryTypes())
	default:
		err = fmt.Errorf("plugin describes itself as of unknown kind %d", answer.GetKind())
	}
	return d, err
}

// Healthy asks the plugin behind conn whether it serves, by the gRPC health protocol. Any answer but SERVING is an error.
func Healthy(ctx context.Context, conn grpc.ClientConnInterface) error {
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: handshake.Health})
	if err != nil {
		return fmt.Errorf("health check failed: %w", bounded(err))
	}
	if got := answer.GetStatus(); got != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("health check answered %s", got)
	}
	return nil
}

func channels(named []pluginv1.Channel) ([]courier.Channel, error) {
	var known []courier.Channel
	for _, channel := range named {
		switch channel {
		case pluginv1.Channel_CHANNEL_EMAIL:
			known = append(known, courier.Email)
		case pluginv1.Channel_CHANNEL_SMS:
			known = append(known, courier.SMS)
		default: // a channel of a later protocol: no use for it here
		}
	}
	if len(known) == 0 {
		return nil, errors.New("courier plugin names no known channel")
	}
	slices.Sort(known)
	return slices.Compact(known), nil
}

func registryTypes(named []string) ([]string, error) {
	if len(named) == 0 || len(named) > maxRegistryTypes {
		return nil, fmt.Errorf("ownership plugin names %d registry types, 1 to %d are allowed", len(named), maxRegistryTypes)
	}
	types := slices.Clone(named)
	for _, name := range types {
		if name == "" || name != clean(name, maxRegistryType) {
			return nil, fmt.Errorf("ownership plugin names a registry type %q that is empty, too long or not printable", clean(name, maxRegistryType))
		}
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

// failure is a plugin's error, cut to its bound: what it says goes into logs, and must not fill them.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// bounded shortens a status error and leaves it readable: "unavailable: sentence". An error of the caller's own context stays
// found by errors.Is. Each of secrets is masked in the text.
func bounded(err error, secrets ...string) error {
	s := status.Convert(err)
	text := s.Message()
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	f := &failure{text: clean(s.Code().String()+": "+text, handshake.MaxErrorText)}
	switch s.Code() {
	case codes.Canceled:
		f.cause = context.Canceled
	case codes.DeadlineExceeded:
		f.cause = context.DeadlineExceeded
	}
	return f
}

// clean cuts s to at most n bytes on a character's edge, and replaces what is not printable by spaces.
func clean(s string, n int) string {
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
