// Package review has the rules by which a registry lists only what a second person has approved
// (contract C-10 to C-18): the states of a review, who may decide it, the rules that approve
// without a person, and the difference between two documents. It does no I/O.
package review

import (
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// MaxComment is the greatest length of a comment, in characters.
const MaxComment = 2000

// Operator is the decider of operator commands.
const Operator = "operator"

// State is the state of a review.
type State string

// The states. Only a pending review changes.
const (
	Pending    State = "pending"
	Approved   State = "approved"
	Rejected   State = "rejected"
	Superseded State = "superseded" // another document of the version was submitted meanwhile

	ChangesRequested State = "changes_requested" // it is listed when it is submitted again with them
)

// ParseState returns the state with the given name. It returns fault.Invalid for any other text.
func ParseState(s string) (State, error) {
	return fault.OneOf("state", s, Pending, Approved, Rejected, ChangesRequested, Superseded)
}

// Kind says what a review adds to the registry.
type Kind string

// The kinds.
const (
	NewServer   Kind = "new-server"
	NewVersion  Kind = "new-version"
	Replacement Kind = "replacement" // of the document of a version that is served
	Tools       Kind = "tools"       // another tool list of a version that is served
)

// CheckState is the outcome of the check of one package.
type CheckState string

// The outcomes.
const (
	CheckPassed  CheckState = "passed"
	CheckFailed  CheckState = "failed"
	CheckSkipped CheckState = "skipped" // it could not be made
)

// Check is the check of one package of a document (contract R-56).
type Check struct {
	RegistryType string
	Identifier   string
	State        CheckState
	Message      string // empty if it passed
}

// Review is a document that was submitted, and what was decided about it.
type Review struct {
	ID       registry.ReviewID
	Name     registry.Name
	Version  registry.Version
	State    State
	Kind     Kind
	Document []byte // compact JSON
	// Replaced is the document that Document was compared with when the review was decided; nil
	// before, and if there was none.
	Replaced []byte
	Checks   []Check // empty while packages are not checked

	Submitter   Submitter
	SubmittedAt time.Time
	DecidedBy   string // user id, Operator, or empty if no person decided
	DecidedAt   time.Time
	Comment     string
	Rule        RuleID // that approved it; otherwise empty
	// First is the first of two approvals of a review that is pending, or was approved by two; otherwise the zero value.
	First Approval

	Request Request // the zero value if the submitter made the document

	// Part and Source are those of a tool list, whose canonical JSON Document then has (package tools);
	// otherwise empty.
	Part   tools.PartKey
	Source tools.Source
}

// event is what happens to a review.
type event uint8

const (
	approve event = iota
	reject
	supersede
	requestChanges
)

// transitions are all transitions of reviews. An event without one is refused.
func transitions() map[State]map[event]State {
	return map[State]map[event]State{
		Pending: {approve: Approved, reject: Rejected, supersede: Superseded, requestChanges: ChangesRequested},
	}
}

// transition returns the review after an event, or fault.Conflict if its state does not allow the
// event.
func (r Review) transition(e event, now time.Time) (Review, error) {
	next, ok := transitions()[r.State][e]
	if !ok {
		return Review{}, fault.Newf(fault.Conflict, "the review is not pending any more: it is %s", r.State)
	}
	if r.State, r.DecidedAt = next, now.UTC().Truncate(time.Microsecond); e != approve {
		r.First = Approval{}
	}
	return r, nil
}

// Supersede returns the review after another document of its version was submitted. It returns
// fault.Conflict if the review is not pending.
func (r Review) Supersede(now time.Time) (Review, error) { return r.transition(supersede, now) }

// Decision is what a person decides about a review.
type Decision struct {
	Approve bool
	Changes bool   // it is refused until something changes
	Many    bool   // it is one of many: it approves no tools
	Unread  bool   // it approves only what is harmless
	Two     Text   // what two people must approve; empty if one is enough
	By      string // user id or Operator
	Comment string // ParseComment
	At      time.Time
}

// Decide returns the review after a decision; still pending after the first of two approvals. It returns
// fault.Conflict if the review is not pending, or for two approvals of one person, and fault.Forbidden if the decider has submitted the document, also through a policy.
func (r Review) Decide(d Decision) (Review, error) {
	e := reject
	switch {
	case d.Approve:
		e = approve
	case d.Changes:
		e = requestChanges
	}
	decided, err := r.transition(e, d.At)
	if err != nil {
		return Review{}, err
	}
	if r.IsOwn(registry.Holder(d.By)) {
		return Review{}, fault.New(fault.Forbidden,
			"you cannot decide about what you submitted yourself, or through a policy that you created")
	}
	if d.Approve && (d.Two == "" || r.First.By == "" || r.First.Text != d.Two) {
		decided.First = Approval{}
	}
	switch {
	case !d.Approve || d.Two == "":
	case decided.First.By == d.By:
		return Review{}, fault.New(fault.Conflict, "you have approved it already: it is dangerous, so another reviewer approves it too")
	case decided.First.By == "":
		r.First = Approval{d.By, decided.DecidedAt, d.Two}
		return r, nil
	}
	decided.DecidedBy, decided.Comment = d.By, d.Comment
	return decided, nil
}

// ApproveByRule returns the review after a rule has approved it. It returns fault.Conflict if the
// review is not pending.
func (r Review) ApproveByRule(id RuleID, now time.Time) (Review, error) {
	approved, err := r.transition(approve, now)
	approved.Rule = id
	return approved, err
}

// ParseComment returns a comment. It returns fault.Invalid if it is too long, has a NUL or is not
// UTF-8, or if it is blank and required.
func ParseComment(s string, required bool) (string, error) {
	switch {
	case required && strings.TrimSpace(s) == "":
		return "", fault.New(fault.Invalid, "comment is required: say why, for the publisher")
	case !registry.IsText(s):
		return "", fault.New(fault.Invalid, "comment must be text without NUL")
	case utf8.RuneCountInString(s) > MaxComment:
		return "", fault.Newf(fault.Invalid, "comment must have at most %d characters", MaxComment)
	}
	return s, nil
}

// PackageChecks returns the checks of the packages; for a document that was accepted without them,
// one that was skipped for each package. It returns fault.Invalid if the document is not a JSON object.
func (r Review) PackageChecks() ([]Check, error) {
	if len(r.Checks) > 0 {
		return r.Checks, nil
	}
	root, err := readObject(r.Document)
	if err != nil {
		return nil, err
	}
	var all []Check
	for _, p := range root.Objects("packages") {
		all = append(all, Check{p.Text("registryType"), p.Text("identifier"), CheckSkipped, "no check ran"})
	}
	return all, nil
}

// Shown is a review with what it is compared with.
type Shown struct {
	Review

	// Replaces is the document that a replacement replaces, or the latest one that a new version
	// follows; otherwise nil.
	Replaces []byte
	Diff     []Difference // between Replaces and the document
	Signs    []Sign       // what changes in words, the dangerous ones first
	Two      bool         // two people must approve it
	// Lists are the tool lists that it decides about: that of a review of one, or those that wait with a
	// document. One that was decided has those of a review of one only.
	Lists []tools.Proposal
}

// Show returns a review with the document that it is compared with, which may be nil. It returns
// fault.Invalid if one of the documents is not JSON.
func (r Review) Show(replaces []byte) (Shown, error) {
	diff, err := Diff(replaces, r.Document)
	if err != nil || r.Kind == Tools {
		return Shown{Review: r, Replaces: replaces, Diff: diff}, err
	}
	points, err := Summarize(replaces, r.Document)
	return Shown{Review: r, Replaces: replaces, Diff: diff, Signs: signsOf(points)}, err
}

// The bounds of requests.
const (
	MaxReason   = 500  // characters of Request.Reason
	MaxSource   = 2048 // bytes of Request.Source
	MaxRequests = 20   // requests of a person that wait, with which the person may not add another one
)

// Request says why a person wants a server whose document somebody else has made.
type Request struct {
	Reason string // ParseReason
	Source string // the address of the document
}

// IsRequest reports whether a person wants the server, and has not made its document.
func (r Review) IsRequest() bool { return r.Request != (Request{}) }

// ParseReason returns the sentence with which a person requests a server. It returns fault.Invalid
// if it is blank or too long, has a NUL or is not UTF-8.
func ParseReason(s string) (string, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return "", fault.New(fault.Invalid, "reason is required: say in a sentence what you need it for")
	case !registry.IsText(s):
		return "", fault.New(fault.Invalid, "reason must be text without NUL")
	case utf8.RuneCountInString(s) > MaxReason:
		return "", fault.Newf(fault.Invalid, "reason must have at most %d characters", MaxReason)
	}
	return s, nil
}

// ParseSource returns the address of a document that a person names. It returns fault.Invalid
// unless it is an absolute http or https URL without credentials and fragment.
func ParseSource(s string) (string, error) {
	if len(s) > MaxSource {
		return "", fault.Newf(fault.Invalid, "serverName: the address must have at most %d bytes", MaxSource)
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "" || u.Fragment != "" || strings.ContainsFunc(s, isOutsideURL):
		return "", fault.New(fault.Invalid, "serverName: the address must be absolute, such as https://example.com/server.json")
	case u.Scheme != "https" && u.Scheme != "http":
		return "", fault.New(fault.Invalid, "serverName: the address must begin with https:// or http://")
	case u.User != nil:
		return "", fault.New(fault.Invalid, "serverName: the address must not contain a user name or a password")
	}
	return s, nil
}

func isOutsideURL(r rune) bool { return r <= ' ' || r >= 0x7f }

// Submitter is who submitted a document.
type Submitter struct {
	// Key identifies the submitter: the user id of a person, or what a publisher has proved.
	Key string
	// Policy is the policy by which a publisher submitted; empty for a person, and for a proof that
	// depends on no policy.
	Policy registry.PolicyID
	// Makers are the people who created the policies by which a publisher submitted.
	Makers []registry.Holder
}

// People returns the people who are responsible for the document: its submitter, or the makers of
// the policies.
func (s Submitter) People() []registry.Holder {
	if s.Policy != "" || len(s.Makers) > 0 {
		return s.Makers
	}
	return []registry.Holder{registry.Holder(s.Key)}
}

// WaitsFor reports whether a person may decide next, who has neither submitted the document nor approved it first.
func (r Review) WaitsFor(person registry.Holder) bool {
	return r.State == Pending && !r.IsOwn(person) && r.First.By != string(person)
}

// SinceWhen returns since when a review waits for those who knew of what waited at a time: since its submission, or its
// first approval.
func (r Review) SinceWhen(known time.Time) time.Time {
	if r.SubmittedAt.After(known) {
		return r.SubmittedAt
	}
	return r.First.At
}

// IsOwn reports whether a person has submitted the document, or created a policy by which it was
// submitted.
func (r Review) IsOwn(person registry.Holder) bool {
	return r.Submitter.Key == string(person) || slices.Contains(r.Submitter.Makers, person)
}
