package registry

import (
	"cmp"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

type (
	// Name is toolserver.Name.
	Name = toolserver.Name
	// Pattern is toolserver.Pattern.
	Pattern = toolserver.Pattern
	// NameRange is toolserver.NameRange.
	NameRange = toolserver.NameRange
	// Action is toolserver.Action.
	Action = toolserver.Action
)

// The actions of grants.
const (
	ActionPublish = toolserver.ActionPublish
	ActionEdit    = toolserver.ActionEdit
	ActionReview  = toolserver.ActionReview
	ActionOperate = toolserver.ActionOperate
)

// MaxName is the greatest length of a name in characters (contract R-40).
const MaxName = toolserver.MaxName

// ParseName is toolserver.ParseName.
func ParseName(s string) (Name, error) { return toolserver.ParseName(s) }

// ParsePattern is toolserver.ParsePattern.
func ParsePattern(s string) (Pattern, error) { return toolserver.ParsePattern(s) }

// ParseAction is toolserver.ParseAction.
func ParseAction(s string) (Action, error) { return toolserver.ParseAction(s) }

// AllNames is toolserver.AllNames.
func AllNames() NameRange { return toolserver.AllNames() }

// CanBeInName is toolserver.CanBeInName.
func CanBeInName(s string) bool { return toolserver.CanBeInName(s) }

// Holder is the holder of a grant: a user id, or service: and the name of a service account.
type Holder string

// PolicyID names the policy of a publisher: a UUID in lower case.
type PolicyID string

// ReviewID names a review: a UUID in lower case.
type ReviewID string

// ServiceHolder returns a service account as the holder of grants.
func ServiceHolder(name string) Holder { return Holder(audit.ServiceActor + name) }

// Service returns the name of a service account; ok is false for a person.
func (h Holder) Service() (name string, ok bool) {
	return strings.CutPrefix(string(h), audit.ServiceActor)
}

// Grant allows its holder one action on the servers that the pattern selects.
type Grant struct {
	Holder  Holder
	Action  Action
	Pattern Pattern
}

// GrantID identifies a stored grant; it is a UUID in lower case.
type GrantID string

// GrantRecord is a grant as it is stored.
type GrantRecord struct {
	Grant
	ID        GrantID
	ManagedBy string // the owner of the file, or the provider, that manages the grant; empty without one
}

// ProviderOrigin is what ManagedBy begins with in a grant that a provider of company sign-in gives.
// It is no name of an owner of a file.
const ProviderOrigin = "provider:"

// Provider returns ManagedBy of a grant that a provider of company sign-in gives, and else nothing. A
// holder has a grant at most once from each provider, and once by hand or from a file.
func (r *GrantRecord) Provider() string {
	if strings.HasPrefix(r.ManagedBy, ProviderOrigin) {
		return r.ManagedBy
	}
	return ""
}

// Origin returns who gives the grant: hand, provider: and a name, or apply: and the owner of a file.
func (r *GrantRecord) Origin() string {
	if r.ManagedBy == "" {
		return "hand"
	}
	return cmp.Or(r.Provider(), "apply:"+r.ManagedBy)
}

// CheckByHand returns fault.Conflict for a grant that a provider gives, which only the groups of the
// person there can end.
func (r *GrantRecord) CheckByHand() error {
	if r.Provider() != "" {
		return fault.Newf(fault.Conflict, "the grant comes from the groups of the person at %s: change them there",
			strings.TrimPrefix(r.ManagedBy, ProviderOrigin))
	}
	return nil
}

// ParseGrant returns the grant of an action and a resource pattern to a holder. Without a pattern,
// the action operate is over everything. It returns fault.Invalid for another action or pattern,
// and for the action operate over a part.
func ParseGrant(holder Holder, action, resource string) (Grant, error) {
	a, err := ParseAction(action)
	if err != nil {
		return Grant{}, fault.In("action", err)
	}
	if a == ActionOperate {
		if resource != "" && resource != toolserver.Everything {
			return Grant{}, fault.In("resource", fault.Newf(fault.Invalid,
				"the action operate is over everything: leave the resource out, instead of %s", quote(resource)))
		}
		resource = toolserver.Everything
	}
	p, err := ParsePattern(resource)
	return Grant{holder, a, p}, fault.In("resource", err)
}

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
