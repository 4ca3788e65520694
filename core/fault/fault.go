// Package fault defines the kinds of failure that the core and its adapters return. An adapter
// turns the error of a driver into a fault once; a transport turns the kind into its own status
// once. An answer that is not a failure, for example a request over its limit, is not a fault.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// Kind is the class of a failure. Its zero value is Internal, so that the text of an unclassified
// error never reaches a caller.
type Kind uint8

// The kinds. The text of an Internal fault never reaches a caller; the others say what the caller
// can do.
const (
	Internal        Kind = iota // a defect or a broken dependency; logged, never shown
	Invalid                     // the caller sent something that breaks a rule
	Unauthenticated             // the caller could not be identified
	Forbidden                   // the caller is known and may not do this
	NotFound                    // it does not exist, or the caller may not see it
	Conflict                    // it contradicts what is stored
	Stale                       // a condition of the caller does not hold: what is stored has changed
	Exhausted                   // a limit is reached; RetryAfter says until when
	Unsupported                 // this service, as it is configured, does not do this
	Unavailable                 // a dependency does not work; the same call may succeed later
)

var kindNames = [...]string{
	"internal", "invalid", "unauthenticated", "forbidden", "not found",
	"conflict", "stale", "exhausted", "unsupported", "unavailable",
}

// String returns the kind's name in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[Internal]
}

// Code is a stable identifier of a failure, which programs can handle, for example "invalid_token".
// It is empty where no transport needs one.
type Code string

// ValidationError is the code of an Invalid failure for values that break a rule by themselves.
const ValidationError Code = "validation_error"

// RuleViolated is the code of an Invalid failure that depends on what is stored: the request itself
// is well formed.
const RuleViolated Code = "rule_violated"

// The codes of an Unavailable failure of a server of others that the caller wants this service to call: it
// sends something wrong, or nothing in time. It is no defect of this service.
const (
	UpstreamWrong Code = "upstream_wrong"
	UpstreamSlow  Code = "upstream_slow"
)

// Error is a failure with its kind and a sentence for the caller.
type Error struct {
	Kind       Kind
	Code       Code
	Message    string           // for the caller: lower case, without a full stop
	Field      string           // of Invalid, the field that is wrong, as its caller names it; optional
	Details    jsonvalue.Object // optional facts for the caller, by name
	RetryAfter time.Duration    // for Exhausted, Unavailable and Unauthenticated: when to try again; 0 = not known
	Err        error            // the cause; logged, never shown
}

// New returns a failure of a kind, with a sentence for the caller.
func New(kind Kind, message string) *Error { return &Error{Kind: kind, Message: message} }

// Newf returns a failure of a kind, with a message from a format.
func Newf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Violated returns an Invalid failure with code RuleViolated and a message from a format.
func Violated(format string, args ...any) *Error {
	return Newf(Invalid, format, args...).WithCode(RuleViolated)
}

// Wrap returns a failure with err as its cause. The caller gets the message; the log gets both.
func Wrap(kind Kind, message string, err error) *Error {
	return &Error{Kind: kind, Message: message, Err: err}
}

// WithCode returns e after setting its code.
func (e *Error) WithCode(code Code) *Error {
	e.Code = code
	return e
}

// In returns err as the failure of a field: a copy of it if it is one of this package, and otherwise
// err itself.
func In(field string, err error) error {
	f, ok := As(err)
	if !ok {
		return err
	}
	named := *f
	named.Field = field
	return &named
}

// WithDetail returns e after adding one fact for the caller.
func (e *Error) WithDetail(name string, value jsonvalue.Value) *Error {
	if e.Details == nil {
		e.Details = jsonvalue.Object{}
	}
	e.Details[name] = value
	return e
}

// After returns e after setting when the caller may try again.
func (e *Error) After(d time.Duration) *Error {
	e.RetryAfter = d
	return e
}

// Error returns the message for the caller, followed by the cause.
func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return e.Message
	case e.Message == "":
		return e.Err.Error()
	default:
		return e.Message + ": " + e.Err.Error()
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// PublicMessage returns the message of err for people other than operators of the machine, like
// readers of the audit log: "internal error" for a failure of kind Internal, for one without a
// message and for any error that is not a fault.
func PublicMessage(err error) string {
	f, ok := As(err)
	if !ok || f.Kind == Internal || f.Message == "" {
		return "internal error"
	}
	return f.Message
}

// As returns the failure in err's chain, if there is one.
func As(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// KindOf returns the kind of err: Internal for any error that is not a fault.
func KindOf(err error) Kind {
	if e, ok := As(err); ok {
		return e.Kind
	}
	return Internal
}

// Is reports whether err is a fault of the kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }

// maxQuoted is how much of a value that is not allowed a message repeats, in characters.
const maxQuoted = 60

// OneOf returns the value that a text names, of several allowed ones. It returns Invalid for any
// other text; the message lists the allowed ones, and begins with what the value is of.
func OneOf[T ~string](what, text string, allowed ...T) (T, error) {
	var list strings.Builder
	for i, value := range allowed {
		switch {
		case string(value) == text:
			return value, nil
		case i > 0 && i == len(allowed)-1:
			list.WriteString(" or ")
		case i > 0:
			list.WriteString(", ")
		}
		list.WriteString(string(value))
	}
	return "", Newf(Invalid, "%s must be %s, not %.*q", what, list.String(), maxQuoted, text)
}
