package pluginclient

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/courier/couriertest"
	"github.com/tollgate-dev/tollgate/ports/ownership"
	"github.com/tollgate-dev/tollgate/test/must"
)

// fixedResponse is a connection on which every call returns the same response.
type fixedResponse struct {
	message proto.Message
	err     error
}

func (a fixedResponse) Invoke(_ context.Context, _ string, _, reply any, _ ...grpc.CallOption) error {
	if a.message != nil {
		into, ok := reply.(proto.Message)
		if !ok {
			return errors.New("the reply is not a protocol message")
		}
		proto.Merge(into, a.message)
	}
	return a.err
}

func (fixedResponse) NewStream(
	context.Context, *grpc.StreamDesc, string, ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return nil, errors.New("streams are not supported")
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	email, sms := pluginv1.Channel_CHANNEL_EMAIL, pluginv1.Channel_CHANNEL_SMS
	many := make([]string, handshake.MaxRegistryTypes+1)
	for i := range many {
		many[i] = strings.Repeat("a", i+1)
	}
	for name, c := range map[string]struct {
		response *pluginv1.DescribeResponse
		want     Description
		wrong    string
	}{
		"a courier with repeated channels": {
			&pluginv1.DescribeResponse{
				Kind: pluginv1.Kind_KIND_COURIER, Version: "1\n" + strings.Repeat("é", 40),
				Channels: []pluginv1.Channel{sms, 77, email, sms},
			},
			Description{
				Kind: Courier, Version: "1 " + strings.Repeat("é", 31), Channels: []courier.Channel{
					courier.Email, courier.SMS,
				},
			}, "",
		},
		"an ownership plugin with repeated types": {
			&pluginv1.DescribeResponse{
				Kind: pluginv1.Kind_KIND_OWNERSHIP, RegistryTypes: []string{"oci", "npm", "oci"},
			},
			Description{Kind: Ownership, RegistryTypes: []string{"npm", "oci"}}, "",
		},
		"a description without a kind": {&pluginv1.DescribeResponse{}, Description{}, "the unknown kind 0"},
		"a courier without a known channel": {
			&pluginv1.DescribeResponse{Kind: pluginv1.Kind_KIND_COURIER, Channels: []pluginv1.Channel{77}},
			Description{}, "lists no known channel",
		},
		"an ownership plugin without types": {
			&pluginv1.DescribeResponse{Kind: pluginv1.Kind_KIND_OWNERSHIP}, Description{}, "lists 0 registry types",
		},
		"an empty registry type": {
			&pluginv1.DescribeResponse{Kind: pluginv1.Kind_KIND_OWNERSHIP, RegistryTypes: []string{""}},
			Description{}, "empty",
		},
		"a registry type with a tab": {
			&pluginv1.DescribeResponse{Kind: pluginv1.Kind_KIND_OWNERSHIP, RegistryTypes: []string{"a\tb"}},
			Description{}, "not printable",
		},
		"too many registry types": {
			&pluginv1.DescribeResponse{Kind: pluginv1.Kind_KIND_OWNERSHIP, RegistryTypes: many},
			Description{}, "lists 65",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Describe(t.Context(), fixedResponse{message: c.response})
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("Describe = %v, want %q", err, c.wrong)
				}
				return
			}
			if err != nil || got.Kind != c.want.Kind || got.Version != c.want.Version ||
				!slices.Equal(got.Channels, c.want.Channels) || !slices.Equal(got.RegistryTypes, c.want.RegistryTypes) {
				t.Errorf("Describe = %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestCheckHealth(t *testing.T) {
	t.Parallel()
	serving := &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}
	if err := CheckHealth(t.Context(), fixedResponse{message: serving}); err != nil {
		t.Errorf("serving: %v", err)
	}
	not := &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_NOT_SERVING}
	if err := CheckHealth(t.Context(), fixedResponse{message: not}); err == nil {
		t.Error("not serving: no error")
	}
	if err := CheckHealth(t.Context(), fixedResponse{
		err: status.Error(codes.DeadlineExceeded, "late"),
	}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("late: %v", err)
	}
}

func TestDeliverConvertsStatusesToFaults(t *testing.T) {
	t.Parallel()
	d := Description{Kind: Courier, Channels: []courier.Channel{courier.Email}}
	m := couriertest.Code(courier.Email, "042917")
	for code, want := range map[codes.Code]fault.Kind{
		codes.Unimplemented: fault.Unsupported, codes.Unavailable: fault.Unavailable,
		codes.InvalidArgument: fault.Unavailable,
		codes.Internal:        fault.Unavailable, codes.ResourceExhausted: fault.Unavailable,
		codes.Canceled: fault.Unavailable,
	} {
		err := Deliver(t.Context(), fixedResponse{err: status.Error(code, m.Recipient+" got 042917")}, d, m)
		if !fault.Is(err, want) || strings.Contains(err.Error(), m.Code) || strings.Contains(err.Error(), m.Recipient) {
			t.Errorf("%v: Deliver = %v, want kind %v without the secrets", code, err, want)
		}
		if errors.Is(err, context.Canceled) != (code == codes.Canceled) {
			t.Errorf("%v: Deliver = %v", code, err)
		}
	}
}

func TestCheckOwnershipConvertsResponsesToFaults(t *testing.T) {
	t.Parallel()
	d := Description{Kind: Ownership, RegistryTypes: []string{"npm"}}
	c := ownership.Claim{ServerName: "a/b", RegistryType: "npm", Identifier: "b"}
	refusal := func(sentence string) fixedResponse {
		return fixedResponse{
			message: &pluginv1.CheckResponse{
				Verdict: &pluginv1.CheckResponse_Refused{Refused: &pluginv1.Refused{Sentence: sentence}},
			},
		}
	}
	for name, test := range map[string]struct {
		answer fixedResponse
		kind   fault.Kind
		want   string
	}{
		"a refusal":                    {refusal("no such package"), fault.Invalid, "no such package"},
		"a refusal without a sentence": {refusal(" \n"), fault.Invalid, "does not claim"},
		"a refusal that is too long": {
			refusal(strings.Repeat("x", 10_000)), fault.Invalid, strings.Repeat("x", maxRefusal),
		},
		"a response without a result": {
			fixedResponse{message: &pluginv1.CheckResponse{}}, fault.Unavailable, "neither owned nor refused",
		},
		"the status Unimplemented": {
			fixedResponse{err: status.Error(codes.Unimplemented, "x")}, fault.Unsupported, "npm",
		},
		"the status Unavailable": {
			fixedResponse{err: status.Error(codes.Unavailable, "503")}, fault.Unavailable, "503",
		},
	} {
		err := CheckOwnership(t.Context(), test.answer, d, c)
		if !fault.Is(err, test.kind) || !strings.Contains(err.Error(), test.want) || len(err.Error()) > maxRefusal+100 {
			t.Errorf("%s: Check = %v, want kind %v with %q", name, err, test.kind, test.want)
		}
	}
}

func TestRetryDelayIsBounded(t *testing.T) {
	t.Parallel()
	d := Description{Kind: Ownership, RegistryTypes: []string{"npm"}}
	for requested, want := range map[time.Duration]time.Duration{
		-time.Second: 0, 0: 0, 1500 * time.Millisecond: 1500 * time.Millisecond, 24 * time.Hour: 24 * time.Hour,
		2000 * time.Hour: 24 * time.Hour,
	} {
		busy, err := status.New(codes.Unavailable, "busy").WithDetails(&errdetails.RetryInfo{
			RetryDelay: durationpb.New(requested),
		})
		must.Succeed(t, err)
		err = CheckOwnership(t.Context(), fixedResponse{err: busy.Err()}, d, ownership.Claim{
			ServerName: "a/b", RegistryType: "npm", Identifier: "b",
		})
		if f, ok := fault.As(err); !ok || f.Kind != fault.Unavailable || f.RetryAfter != want {
			t.Errorf("with a delay of %s: Check = %v, want a fault with the delay %s", requested, err, want)
		}
	}
}

func TestCheckNamesTheHost(t *testing.T) {
	t.Parallel()
	d := Description{RegistryTypes: []string{"npm"}}
	for host, want := range map[string]string{
		"registry.example.com":   "registry host registry.example.com could not be reached, or gave no usable response",
		"":                       "its check failed or took too long",
		strings.Repeat("h", 300): "registry host " + strings.Repeat("h", maxHost) + " could",
	} {
		away, err := status.New(codes.Unavailable, "dial 10.0.0.1").WithDetails(&errdetails.ErrorInfo{
			Reason: handshake.ReasonRegistryHost, Domain: host,
		})
		must.Succeed(t, err)
		err = CheckOwnership(t.Context(), fixedResponse{err: away.Err()}, d, ownership.Claim{
			ServerName: "a/b", RegistryType: "npm", Identifier: "b",
		})
		if f, ok := fault.As(err); !ok || f.Kind != fault.Unavailable || !strings.HasPrefix(f.Message, want) {
			t.Errorf("with the host %.30q: Check = %v, want %.60q", host, err, want)
		}
	}
}

func TestPluginTextIsShortAndPrintable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "s"))
		n := rapid.IntRange(0, 32).Draw(t, "n")
		got := printablePrefix(s, n)
		if strings.ContainsAny(got, "\x00\n\r") {
			t.Fatalf("clean(%q, %d) = %q, want it printable", s, n, got)
		}
		if printablePrefix(got, len(got)) != got {
			t.Fatalf("clean is not idempotent on %q", got)
		}
	})
	if got := shortenError(status.Error(codes.Internal, strings.Repeat("x", 1<<20))).
		Error(); len(got) > handshake.MaxErrorText {
		t.Errorf("error of %d bytes, want at most %d", len(got), handshake.MaxErrorText)
	}
}
