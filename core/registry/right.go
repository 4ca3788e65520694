package registry

import (
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// RightRequestID names a request for a right: a UUID in lower case.
type RightRequestID string

// RightState is what became of a request for a right.
type RightState string

// The states.
const (
	RightOpen     RightState = "open"
	RightGranted  RightState = "granted"
	RightDeclined RightState = "declined"
)

// The bounds of the requests of a person for rights.
const (
	MaxOpenRights    = 5  // that wait at the same time
	MaxDecidedRights = 20 // that are kept after they were decided, the last ones
)

// RightRequest is the request of a person for a grant. The fields from Given on are of one that was decided.
type RightRequest struct {
	Grant

	ID        RightRequestID
	Email     string // of the person, as the store knows it
	Reason    string
	AskedAt   time.Time
	State     RightState
	Given     Pattern // what was granted, which may be less; the zero value if it was declined
	DecidedBy Holder
	Comment   string
	DecidedAt time.Time
}

// Shown returns what was granted, or else what the person asked for.
func (r RightRequest) Shown() Pattern {
	if r.State == RightGranted {
		return r.Given
	}
	return r.Pattern
}

// IsBroad reports whether a pattern is of all servers, or of a whole top-level domain.
func IsBroad(p Pattern) bool {
	prefix, wild := strings.CutSuffix(p.String(), "*")
	return wild && !strings.ContainsAny(strings.TrimSuffix(prefix, "."), "./")
}

// ParseRight returns the grant that a person asks for. It returns fault.Invalid for another action than publish, edit
// and review, and for another pattern.
func ParseRight(who Holder, action, resource string) (Grant, error) {
	if err := fault.In("action", checkAskable(action)); err != nil {
		return Grant{}, err
	}
	return ParseGrant(who, action, resource)
}

func checkAskable(action string) error {
	_, err := fault.OneOf("action", action, ActionPublish, ActionEdit, ActionReview)
	return err
}
