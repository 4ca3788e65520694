package authstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Lockouts stores the failed logins of each subject: an account and a device, or an account and an
// address range.
type Lockouts interface {
	// Update changes the lockout of a subject. A subject without a record has the zero value.
	Update(ctx context.Context, key auth.LockoutKey, change func(*auth.Lockout) error) error
	// Get returns the lockout of a subject, or the zero value. It includes every Update, on any
	// instance, that returned before the call.
	Get(ctx context.Context, key auth.LockoutKey) (auth.Lockout, error)
	// DeleteBefore deletes the lockouts whose last failure and whose lock are from before t, and
	// those that were reset. It returns how many it deleted.
	DeleteBefore(ctx context.Context, t time.Time) (int, error)
}
