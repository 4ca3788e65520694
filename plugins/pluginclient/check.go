package pluginclient

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
	"github.com/tollgate-dev/tollgate/ports/ownership"
)

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
