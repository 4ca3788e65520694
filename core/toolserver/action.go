package toolserver

import "github.com/tollgate-dev/tollgate/core/fault"

// Action is what a grant allows (contract R-34).
type Action string

// The actions of grants.
const (
	ActionPublish Action = "publish"
	ActionEdit    Action = "edit"
	ActionReview  Action = "review"
	// ActionOperate allows what operator commands do, in the console. It is over everything, and
	// does not include the others (contract C-80).
	ActionOperate Action = "operate"
)

// ParseAction returns the action with the given name. It returns fault.Invalid for any other text.
func ParseAction(s string) (Action, error) {
	return fault.OneOf("action", s, Actions()...)
}

// Actions returns all actions.
func Actions() []Action { return []Action{ActionPublish, ActionEdit, ActionReview, ActionOperate} }
