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

	pluginv1 "github.com/tollgate-dev/tollgate/plugins/proto/tollgate/plugin/v1"
)

// Claim is what a server document says of one of its packages.
type Claim struct {
	ServerName      string // the full name of the server that the package must claim
	RegistryType    string // always one of those that the plugin named
	RegistryBaseURL string // as the document names it; empty for the public registry of the type
	Identifier      string // the package's name, or its address where the type has no names; never empty
	Version         string // empty where the identifier holds it
	FileSHA256      string // lower-case hexadecimal; empty where the document gives none
}

// Ownership asks a package registry about claims. Its methods are called from many goroutines at once.
type Ownership interface {
	// RegistryTypes names the registry types served, such as "npm": at least one, the same at each call.
	RegistryTypes() []string
	// Check returns nil when the package exists and claims the server, an error made by [Refuse] when it does not, and any
	// other error when no verdict was reached: the host then takes the failure as transient.
	Check(ctx context.Context, c Claim) error
}

// refusal is a verdict, not a failure.
type refusal struct{ sentence string }

func (r *refusal) Error() string { return r.sentence }

// Refuse returns the error for a claim that the registry does not bear out. The publisher reads the sentence, so it is lower
// case, without full stop, at most 500 bytes, and tells "no such package" from "no such version" from "not claimed".
func Refuse(format string, args ...any) error {
	return &refusal{sentence: fmt.Sprintf(format, args...)}
}

// later is a failure that tells when to try again.
type later struct {
	after time.Duration
	err   error
}

func (l *later) Error() string { return l.err.Error() }
func (l *later) Unwrap() error { return l.err }

// RetryAfter returns err, which is no verdict, with what a registry said of when to ask again. Publishers are told so. A time
// that is not positive is left out.
func RetryAfter(after time.Duration, err error) error {
	if err == nil || after <= 0 {
		return err
	}
	return &later{after: after, err: err}
}

// ServeOwnership serves o to the host that started this program, and returns when the host is done with it. Call it from main.
// A program that no host started is told so on standard error and exits with status 1.
func ServeOwnership(o Ownership) { serve(OwnershipPlugin(o)) }

// OwnershipPlugin returns the plugin side of o, for those who run their own go-plugin server; [ServeOwnership] needs no more.
func OwnershipPlugin(o Ownership) plugin.GRPCPlugin {
	return side{register: func(server *grpc.Server) {
		pluginv1.RegisterPluginServer(server, describer{describe: func() *pluginv1.DescribeResponse {
			return &pluginv1.DescribeResponse{
				Kind: pluginv1.Kind_KIND_OWNERSHIP, Version: versionOf(o), RegistryTypes: o.RegistryTypes(),
			}
		}})
		pluginv1.RegisterOwnershipServer(server, ownershipServer{ownership: o})
	}}
}

type ownershipServer struct {
	pluginv1.UnimplementedOwnershipServer
	ownership Ownership
}

func (s ownershipServer) Check(ctx context.Context, request *pluginv1.CheckRequest) (_ *pluginv1.CheckResponse, err error) {
	defer recovered(&err)
	if !slices.Contains(s.ownership.RegistryTypes(), request.GetRegistryType()) {
		return nil, status.Error(codes.Unimplemented, "registry type is not served")
	}
	if request.GetServerName() == "" || request.GetIdentifier() == "" {
		return nil, status.Error(codes.InvalidArgument, "server name or identifier is missing")
	}
	err = s.ownership.Check(ctx, Claim{
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
			Refused: &pluginv1.Refused{Sentence: utf8Only(refused.sentence)},
		}}, nil
	}
	return nil, withRetry(statusOf(ctx, err), err)
}

// withRetry returns answer with the time that err names, in the detail that gRPC's error model has for it.
func withRetry(answer, err error) error {
	var l *later
	if !errors.As(err, &l) {
		return answer
	}
	detailed, failed := status.Convert(answer).WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(l.after)})
	if failed != nil {
		return answer
	}
	return detailed.Err()
}
