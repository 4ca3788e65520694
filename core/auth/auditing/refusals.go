package auditing

import (
	"context"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// MaxRefusals is how many refusals of a person are recorded in each RefusalWindow. More are not
// recorded until the window ends, so that no one can fill the database with them (contract A-66).
const (
	MaxRefusals   = 20
	RefusalWindow = time.Hour
)

// Refusals records access that was refused to a session: an act above its trust level, and an act
// on what belongs to another person (contract A-66). The events are in the log of the person whose
// session was refused; the owner of what was asked for does not see them. A nil Refusals records
// nothing. It is safe for concurrent use.
type Refusals struct {
	trail    *Trail
	throttle throttle.Throttle
}

// NewRefusals returns Refusals that writes to a trail and counts with a throttle.
func NewRefusals(t *Trail, counts throttle.Throttle) *Refusals { return &Refusals{t, counts} }

// LowTrust records that an operation was refused to a session because of its trust level, if that
// is the cause, and returns the cause. The operation must be one of few: it is stored as it is.
// Errors are those of record.
func (r *Refusals) LowTrust(ctx context.Context, caller auth.Session, operation string, cause error) error {
	f, ok := fault.As(cause)
	if r == nil || !ok || f.Kind != fault.Forbidden || f.Code != auth.CodeInsufficientTrust {
		return cause
	}
	details := audit.Details{"reason": audit.Text(f.Code), "operation": audit.Text(operation)}
	for _, name := range []string{"requiredTrustLevel", "maxAge"} {
		if fact, ok := f.Details[name]; ok {
			details[name] = fact
		}
	}
	return r.record(ctx, caller, audit.Change{Details: details}, cause)
}

// Foreign is an act on what belongs to another person: one of the fields is empty.
type Foreign struct {
	Action  audit.Action
	Device  auth.DeviceID
	Session auth.SessionID
}

// NotOwner records that an act was refused to a session because its subject belongs to another
// person, if that is the cause, and returns the cause. It must be called outside a transaction:
// that of a refused act is rolled back. Errors are those of record.
func (r *Refusals) NotOwner(ctx context.Context, caller auth.Session, act Foreign, cause error) error {
	f, ok := fault.As(cause)
	if r == nil || !ok || f.Kind != fault.Forbidden || f.Code != auth.CodeAccessDenied {
		return cause
	}
	details := audit.Details{"reason": audit.Text(f.Code)}
	details.Set("targetDeviceId", string(act.Device))
	details.Set("targetSessionId", string(act.Session))
	return r.record(ctx, caller, audit.Change{Action: act.Action, Details: details}, cause)
}

// record records a refusal, unless the person has reached the limit, and returns the cause. The
// event is recorded even if the caller has cancelled the request, and waits for its turn to write:
// many refusals at once must not keep each other out of the log. If the counter store or the
// database is not available, the event is lost and the refusal stays what it is; any other failure
// is returned instead of the cause.
func (r *Refusals) record(ctx context.Context, caller auth.Session, c audit.Change, cause error) error {
	ctx = context.WithoutCancel(ctx)
	v, err := r.throttle.Try(ctx, throttle.RefusalUser, string(caller.UserID))
	if err == nil && (v.Allowed || v.Unlimited) {
		c.Category, c.Subject, c.Failed = audit.AccessRefused, audit.Subject(caller.UserID), true
		caller.Describe(c.Details)
		c.Details["trustLevel"] = audit.Text(caller.TrustLevel.String())
		if caller.IPAddress.IsValid() {
			c.Details["ipAddress"] = audit.Text(caller.IPAddress.String())
		}
		if v.Remaining == 0 && !v.Unlimited {
			c.Details["unrecordedUntil"] = audit.Text(v.ResetAt.UTC().Format(time.RFC3339))
		}
		err = r.trail.RecordChanges(ctx, c)
	}
	if err != nil && !fault.Is(err, fault.Unavailable) {
		return fmt.Errorf("record refused access: %w", err)
	}
	return cause
}
