// Package audit is the form of the audit log, for all of the core: the changes that use cases
// record, and the events that are stored and searched. A use case makes its changes by constructors
// in a file of its own, and what is read back from their details is read by functions in the same
// file. Package auditing writes and searches the log.
package audit

import (
	"cmp"
	"time"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// Category is the kind of an audit event.
type Category string

// The categories (contract A-47).
const (
	LoginAttempt       Category = "LOGIN_ATTEMPT"
	RiskEvaluation     Category = "RISK_EVALUATION"
	DeviceChange       Category = "DEVICE_CHANGE"
	SuspiciousActivity Category = "SUSPICIOUS_ACTIVITY"
	StepUpAttempt      Category = "STEP_UP_ATTEMPT"
	RegistryChange     Category = "REGISTRY_CHANGE"
	CredentialChange   Category = "CREDENTIAL_CHANGE"
	AccountChange      Category = "ACCOUNT_CHANGE"
	MethodsChange      Category = "METHODS_CHANGE"
	PublisherProof     Category = "PUBLISHER_PROOF"
	AccessRefused      Category = "ACCESS_REFUSED"
	AccessDecision     Category = "ACCESS_DECISION"
	Authorization      Category = "AUTHORIZATION"
)

// Categories returns all categories.
func Categories() []Category {
	return []Category{
		LoginAttempt, RiskEvaluation, DeviceChange, SuspiciousActivity, StepUpAttempt,
		RegistryChange, CredentialChange, AccountChange, MethodsChange, PublisherProof, AccessRefused, AccessDecision,
		Authorization,
	}
}

// Action is what was done or tried, of the actions of a category.
type Action string

// Subject is the user id of the person whose log has an event.
type Subject string

// Change is what somebody did or tried. It must not contain a password, code or token.
type Change struct {
	Category   Category
	Action     Action  // empty in a category that has one action
	Subject    Subject // empty for what only operators see
	ByOperator bool    // the event names who acted: the actor of the context, or the operator commands
	Failed     bool    // it was refused
	Details    Details
	ID         EventID // of the event; empty for a new one
}

// EventID identifies an event.
type EventID string

// The details of an event.
type (
	// Details are the facts of an event by their names.
	Details = jsonvalue.Object
	// Value is one fact.
	Value = jsonvalue.Value
	// Text is a fact in words, a name or an id.
	Text = jsonvalue.Text
	// Number is a fact that is counted or measured.
	Number = jsonvalue.Number
	// Flag is a fact that holds or not.
	Flag = jsonvalue.Flag
	// List is a fact with several values.
	List = jsonvalue.List
)

// Texts returns a list of texts.
func Texts[T ~string](texts []T) List { return jsonvalue.Texts(texts) }

// Event is one entry of the audit log.
type Event struct {
	ID       EventID
	Time     time.Time
	Category Category
	Subject  Subject
	Success  bool
	Details  Details
}

// The details that events of every category may have.
const (
	DetailAction = "action"
	DetailActor  = "actor" // who acted, see Actor; in old events a bare user id, and of operators only
	DetailServer = "serverName"
	DetailToken  = "tokenPrefix"
	detailLevel  = "trustLevel"
	detailApply  = "applyId"
)

// TrustToken is in place of a trust level in the event of what a token did.
const TrustToken = "TOKEN"

// Actor is who makes changes. The zero value is a local operator command.
type Actor struct {
	Who         string // "person:ID" or "service:NAME"; empty for a local operator command
	TokenPrefix string // the first characters of the token; empty for a session
	ApplyID     string // identifies the state of a file that is applied; empty for other changes
}

// The beginnings of the names of actors.
const (
	PersonActor  = "person:"
	ServiceActor = "service:"
	ToolsActor   = "tools" // the service itself, as it reads the tools of remotes
)

// operator is the actor of a local operator command.
const operator = "operator"

// NewEvent returns the event of a change that an actor makes.
func NewEvent(id EventID, at time.Time, c Change, by Actor) Event {
	details := make(Details, len(c.Details)+2)
	for name, value := range c.Details {
		details[name] = value
	}
	details.Set(DetailAction, string(c.Action))
	if by.TokenPrefix != "" {
		details[DetailToken], details[detailLevel] = Text(by.TokenPrefix), Text(TrustToken)
	}
	details.Set(detailApply, by.ApplyID)
	if c.ByOperator {
		details[DetailActor] = Text(cmp.Or(by.Who, operator))
	}
	return Event{ID: id, Time: at, Category: c.Category, Subject: c.Subject, Success: !c.Failed, Details: details}
}

// Who returns who acted, or whose event it is: an actor, a user id, a publisher or a name.
func (e *Event) Who() string {
	return cmp.Or(e.Details.Text(DetailActor), string(e.Subject), e.Details.Text("publisher"),
		e.Details.Text("service"), e.Details.Text("email"), "unknown")
}

// Action returns what was done or tried. It is empty in a category that has one action.
func (e *Event) Action() Action { return Action(e.Details.Text(DetailAction)) }
