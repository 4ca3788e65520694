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
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/proto/tollgate/plugin/v1"
	"github.com/tollgate-dev/tollgate/ports/ownership"
)

// maxRefusal bounds, in bytes, the sentence of a refusal that reaches a publisher.
const maxRefusal = 500

// maxRetryDelay bounds the wait that a plugin asks for.
const maxRetryDelay = 24 * time.Hour

// Check asks the ownership plugin behind conn, which described itself as d, for a verdict. Errors are those of
// [ownership.Checker].
func Check(ctx context.Context, conn grpc.ClientConnInterface, d Description, c ownership.Claim) error {
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
		return Unchecked(bounded(err)).After(retryDelay(err))
	}
	switch verdict := answer.GetVerdict().(type) {
	case *pluginv1.CheckResponse_Owned:
		return nil
	case *pluginv1.CheckResponse_Refused:
		return refused(verdict.Refused.GetSentence())
	}
	return Unchecked(errors.New("plugin answered without a verdict"))
}

// retryDelay returns when the plugin asks to try again, 0 when it does not say. It is a plugin's word, so it is bounded.
func retryDelay(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return min(max(info.GetRetryDelay().AsDuration(), 0), maxRetryDelay)
		}
	}
	return 0
}

// Unchecked returns the fault for a check without a verdict. The cause stays behind the sentence, for logs.
func Unchecked(cause error) *fault.Error {
	return fault.Wrap(fault.Unavailable, ownership.CodeCheckFailed, "its check failed or took too long", cause)
}

// UnsupportedType returns the fault for a registry type that no plugin checks, naming those that
// one does (contract R-56).
func UnsupportedType(named string, known []string) *fault.Error {
	named = clean(named, maxRegistryType)
	if len(known) == 0 {
		return fault.Newf(fault.Unsupported, ownership.CodeUnsupportedType,
			"packages of registry type %q cannot be checked, and no type can", named)
	}
	return fault.Newf(fault.Unsupported, ownership.CodeUnsupportedType,
		"packages of registry type %q cannot be checked, only those of %s", named, strings.Join(known, ", "))
}

func refused(sentence string) error {
	sentence = clean(sentence, maxRefusal)
	if strings.TrimSpace(sentence) == "" {
		sentence = "the package does not claim the server"
	}
	return fault.New(fault.Invalid, ownership.CodeNotOwned, sentence)
}
