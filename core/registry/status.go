package registry

import (
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// MaxStatusMessage is the most characters of a status message (contract R-30).
const MaxStatusMessage = 500

// Status is the lifecycle status of a server version (contract R-28).
type Status string

// The statuses of a version. Deleted ones are hidden unless asked for.
const (
	StatusActive     Status = "active"
	StatusDeprecated Status = "deprecated"
	StatusDeleted    Status = "deleted"
)

// ParseStatus returns the status of a name; any other is fault.Invalid.
func ParseStatus(s string) (Status, error) {
	switch status := Status(s); status {
	case StatusActive, StatusDeprecated, StatusDeleted:
		return status, nil
	}
	return "", fault.Newf(fault.Invalid, "", "status must be active, deprecated or deleted, not %s", quote(s))
}

// StatusUpdate is the body of a status change, valid by contract R-30. ParseStatusUpdate and
// NewStatusUpdate make one.
type StatusUpdate struct {
	status  Status
	message string
}

// NewStatusUpdate returns a change to a status with a message; empty is none.
// Too long a message, or one beside active, is fault.Invalid.
func NewStatusUpdate(status Status, message string) (StatusUpdate, error) {
	switch n := utf8.RuneCountInString(message); {
	case n > MaxStatusMessage:
		return StatusUpdate{}, fault.Newf(fault.Invalid, "", "statusMessage must have at most %d characters, and has %d", MaxStatusMessage, n)
	case n > 0 && status == StatusActive:
		return StatusUpdate{}, fault.New(fault.Invalid, "", "statusMessage goes with deprecated or deleted only, not with active")
	case strings.ContainsRune(message, 0):
		return StatusUpdate{}, fault.New(fault.Invalid, "", "statusMessage must not hold a NUL")
	}
	return StatusUpdate{status, message}, nil
}

// Status returns the status asked for.
func (u StatusUpdate) Status() Status { return u.status }

// Message returns the message asked for; empty clears the one there is.
func (u StatusUpdate) Message() string { return u.message }

// StatusUpdateBody is the JSON body of a status change, not yet checked against its rules, because
// permission is checked between the two (contract R-6).
type StatusUpdateBody struct{ root node }

// ParseStatusUpdateBody reads the JSON of a status change. What is not an
// object of JSON, or holds a NUL, is fault.Invalid.
func ParseStatusUpdateBody(body []byte) (StatusUpdateBody, error) {
	_, root, err := parseObject(body)
	return StatusUpdateBody{root}, err
}

// Update checks the body against its rules. Everything wrong with it is fault.Invalid
// (contract R-30).
func (b StatusUpdateBody) Update() (StatusUpdate, error) {
	var r report
	object(statusUpdateShape)(&r, place{}, &b.root)
	findDuplicates(&r, place{}, &b.root)
	if refusal := r.refusal("status update"); refusal != "" {
		return StatusUpdate{}, fault.New(fault.Invalid, "", refusal)
	}
	name, _ := b.root.str("status")
	message, _ := b.root.str("statusMessage")
	status, err := ParseStatus(name)
	if err != nil {
		return StatusUpdate{}, err
	}
	return NewStatusUpdate(status, message)
}

var statusUpdateShape = shape{"StatusUpdateRequest", []property{
	{"status", true, text()},
	{"statusMessage", false, text()},
}}
