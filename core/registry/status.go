package registry

import (
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// MaxStatusMessage is the greatest length of a status message in characters (contract R-30).
const MaxStatusMessage = 500

// Status is the lifecycle status of a server version (contract R-28).
type Status string

// The statuses of a version. Readers get deleted versions only on request.
const (
	StatusActive     Status = "active"
	StatusDeprecated Status = "deprecated"
	StatusDeleted    Status = "deleted"
)

// ParseStatus returns the status with the given name. It returns fault.Invalid for any other text.
func ParseStatus(s string) (Status, error) {
	return fault.OneOf("status", s, StatusActive, StatusDeprecated, StatusDeleted)
}

// StatusUpdate is the body of a status change, valid by contract R-30. ParseStatusUpdate and
// NewStatusUpdate make one.
type StatusUpdate struct {
	status  Status
	message string
}

// NewStatusUpdate returns a change to a status with an optional message. It returns fault.Invalid
// for a message that is too long, contains a NUL, or comes with the status active.
func NewStatusUpdate(status Status, message string) (StatusUpdate, error) {
	if err := checkStatusText("statusMessage", message); err != nil {
		return StatusUpdate{}, err
	}
	if message != "" && status == StatusActive {
		return StatusUpdate{}, fault.New(fault.Invalid,
			"statusMessage is allowed with deprecated and deleted only, not with active")
	}
	return StatusUpdate{status, message}, nil
}

// checkStatusText returns fault.Invalid, with the name of the field, for a text that no status
// message can be (contract R-30).
func checkStatusText(field, text string) error {
	switch n := utf8.RuneCountInString(text); {
	case n > MaxStatusMessage:
		return fault.Newf(fault.Invalid, "%s must have at most %d characters, and has %d", field, MaxStatusMessage, n)
	case strings.ContainsRune(text, 0):
		return fault.Newf(fault.Invalid, "%s must not contain a NUL", field)
	}
	return nil
}

// Status returns the requested status.
func (u StatusUpdate) Status() Status { return u.status }

// Message returns the requested message; empty removes the current one.
func (u StatusUpdate) Message() string { return u.message }

// StatusUpdateBody is the JSON body of a status change before its rules are checked: permission is
// checked after reading and before the rules (contract R-6).
type StatusUpdateBody struct{ root node }

// ParseStatusUpdateBody reads the JSON of a status change. It returns fault.Invalid unless the body
// is a JSON object without a NUL.
func ParseStatusUpdateBody(body []byte) (StatusUpdateBody, error) {
	_, root, err := parseObject(body)
	return StatusUpdateBody{root}, err
}

// Update returns the update after checking the rules. It returns fault.Invalid with everything that
// is wrong (contract R-30).
func (b StatusUpdateBody) Update() (StatusUpdate, error) {
	var r report
	objectCheck(statusUpdateShape)(&r, location{}, &b.root)
	findDuplicates(&r, location{}, &b.root)
	if refusal := r.refusalText("status update"); refusal != "" {
		return StatusUpdate{}, fault.New(fault.Invalid, refusal)
	}
	name, _ := b.root.stringProperty("status")
	message, _ := b.root.stringProperty("statusMessage")
	status, err := ParseStatus(name)
	if err != nil {
		return StatusUpdate{}, err
	}
	return NewStatusUpdate(status, message)
}

var statusUpdateShape = shape{"StatusUpdateRequest", []property{
	{"status", true, stringCheck()},
	{"statusMessage", false, stringCheck()},
}}
