package registry

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
)

// AppliedState is the last state of a file that an owner has applied.
type AppliedState struct {
	Owner   string // as the objects that it manages name it
	ApplyID string // in the events of the changes
	By      string // the actor (audit.Actor); empty for a local operator command
	At      time.Time
	Objects []audit.Object // those that the owner has managed since, without secrets
}
