package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
)

// Claim is what a server document states about one of its packages.
type Claim struct {
	ServerName      string // the full name of the server that the package must claim
	RegistryType    string // one of the plugin's registry types
	RegistryBaseURL string // as in the document; empty for the public registry of the type
	Identifier      string // the package's name, or its URL for a type without names; not empty
	Version         string // empty if the identifier contains it
	FileSHA256      string // lower-case hexadecimal; empty if the document has no checksum
}

// Ownership checks claims with a package registry. All methods must be safe for concurrent use.
type Ownership interface {
	// RegistryTypes must return the registry types that the plugin supports, for example "npm": at
	// least one, and the same at each call.
	RegistryTypes() []string
	// Check must return nil if the package exists and claims the server, an error of [Refuse] if it
	// does not, and any other error if the check could not be completed; the host treats that
	// failure as transient.
	Check(ctx context.Context, c Claim) error
}

// refusal is the result of a check, not a failure.
type refusal struct{ sentence string }

func (r *refusal) Error() string { return r.sentence }

// Refuse returns the error for a claim that the registry does not confirm. The publisher reads the
// sentence: write it in lower case without a full stop, in at most 500 bytes, say which of package,
// version or claim is missing, and what to do.
func Refuse(format string, args ...any) error {
	return &refusal{sentence: fmt.Sprintf(format, args...)}
}

// retryableError is an error with the delay before the next try.
type retryableError struct {
	after time.Duration
	err   error
}

func (l *retryableError) Error() string { return l.err.Error() }
func (l *retryableError) Unwrap() error { return l.err }

// RetryAfter returns err with the delay that a registry requested before the next try. The service
// sends the delay to the publisher. RetryAfter returns err unchanged if after is not positive. It
// has no effect on an error of [Refuse].
func RetryAfter(after time.Duration, err error) error {
	if err == nil || after <= 0 {
		return err
	}
	return &retryableError{after: after, err: err}
}

// ServeOwnership serves o to the host that started this program, and returns when the host stops
// the plugin. Call it from main. If no host started the program, ServeOwnership writes that to
// standard error and exits with status 1.
func ServeOwnership(o Ownership) { servePlugin(handshake.Versions(OwnershipPlugin(o))) }

// RunOwnership is [ServeOwnership] for a main function that first has to open its plugin. If err is
// not nil, it writes err to standard error, which the host logs, and returns 1. Otherwise it serves
// o and returns 0. Pass the result to [os.Exit].
func RunOwnership(o Ownership, err error) (exitStatus int) {
	return runPlugin(err, func() { ServeOwnership(o) })
}

// OwnershipPlugin returns o as a go-plugin plugin, for programs that run their own go-plugin
// server. [ServeOwnership] is enough for all others.
func OwnershipPlugin(o Ownership) plugin.GRPCPlugin {
	return ownershipPlugin(func() Ownership { return o }, nil, nil)
}

func ownershipPlugin(current func() Ownership, settings []Setting, configure func(map[string]string) error) grpcPlugin {
	return grpcPlugin{register: func(server *grpc.Server) {
		pluginv1.RegisterPluginServer(server, describer{describe: func() *pluginv1.DescribeResponse {
			o := current()
			return &pluginv1.DescribeResponse{
				Kind: pluginv1.Kind_KIND_OWNERSHIP, Version: pluginVersion(o), RegistryTypes: o.RegistryTypes(),
			}
		}, settings: settings, configure: configure})
		pluginv1.RegisterOwnershipServer(server, ownershipServer{ownership: current})
	}}
}

type ownershipServer struct {
	pluginv1.UnimplementedOwnershipServer
	ownership func() Ownership
}

func (s ownershipServer) Check(
	ctx context.Context, request *pluginv1.CheckRequest,
) (_ *pluginv1.CheckResponse, err error) {
	defer recoverPanic(&err)
	if !slices.Contains(s.ownership().RegistryTypes(), request.GetRegistryType()) {
		return nil, status.Error(codes.Unimplemented, "the plugin does not support this registry type")
	}
	if request.GetServerName() == "" || request.GetIdentifier() == "" {
		return nil, status.Error(codes.InvalidArgument, "the server name or the identifier is missing")
	}
	err = s.ownership().Check(ctx, Claim{
		ServerName: request.GetServerName(), RegistryType: request.GetRegistryType(),
		RegistryBaseURL: request.GetRegistryBaseUrl(), Identifier: request.GetIdentifier(),
		Version: request.GetVersion(), FileSHA256: request.GetFileSha256(),
	})
	var refused *refusal
	switch {
	case err == nil:
		return &pluginv1.CheckResponse{Verdict: &pluginv1.CheckResponse_Owned{Owned: &pluginv1.Owned{}}}, nil
	case errors.As(err, &refused):
		return &pluginv1.CheckResponse{Verdict: &pluginv1.CheckResponse_Refused{
			Refused: &pluginv1.Refused{Sentence: validUTF8(refused.sentence)},
		}}, nil
	}
	return nil, withHost(withRetryDelay(errorStatus(ctx, err), err), err)
}

// withHost adds the host that gave no usable response to the status error answer, as the detail
// ErrorInfo of gRPC, if err has a method RegistryHost like [registryclient.Error]. The publisher reads
// it.
func withHost(answer, err error) error {
	var failed interface{ RegistryHost() string }
	if !errors.As(err, &failed) {
		return answer
	}
	detailed, problem := status.Convert(answer).WithDetails(&errdetails.ErrorInfo{
		Reason: handshake.ReasonRegistryHost, Domain: validUTF8(failed.RegistryHost()),
	})
	if problem != nil {
		return answer
	}
	return detailed.Err()
}

// withRetryDelay adds the delay of err to the status error answer, as the detail RetryInfo of gRPC.
// It returns answer unchanged if err has no delay.
func withRetryDelay(answer, err error) error {
	var l *retryableError
	if !errors.As(err, &l) {
		return answer
	}
	detailed, failed := status.Convert(answer).WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(l.after)})
	if failed != nil {
		return answer
	}
	return detailed.Err()
}
