// Package refusal records in the audit log that a change of the registry was refused
// (contract R-38).
package refusal

import (
	"context"
	"fmt"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// MaxReason is the greatest length of a reason in the audit log, in characters.
const MaxReason = 1000

// Record records that the act was refused, and returns the cause. It returns nil without a cause.
// What an operator could not do is not recorded: only callers are refused. The record is made even
// if the caller has cancelled the request. If it cannot be made, its error is returned instead,
// because every refusal must be recorded.
func Record(ctx context.Context, a authority.Acts, act authority.Act, cause error) error {
	if cause == nil || !act.Caller.IsRemote() {
		return cause
	}
	act.Reason, act.Warning = PublicReason(cause), ""
	ctx, kind := context.WithoutCancel(ctx), fault.KindOf(cause)
	if kind == fault.Unavailable {
		ctx = transaction.Brief(ctx) // the change has waited for its turn; the caller does not wait again
	}
	err := a.Record(ctx, act)
	switch {
	case err == nil, kind == fault.Internal, kind == fault.Unavailable:
		return cause
	default:
		return fmt.Errorf("record a refused %s: %w", act.Action, err)
	}
}

// PublicReason returns the reason of a refusal without internal errors, cut to MaxReason characters
// and an ellipsis.
func PublicReason(cause error) string {
	reason := fault.PublicMessage(cause)
	if runes := []rune(reason); len(runes) > MaxReason {
		return string(runes[:MaxReason]) + "…"
	}
	return reason
}
