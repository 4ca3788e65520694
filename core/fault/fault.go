// Package fault names the kinds of failure that the core and its adapters
// report. A driver's error becomes a fault once, where the driver is; a
// transport turns a kind into its own status once. What is not a failure, such
// as a request over its limit, is not a fault.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind is the class of a failure. Its zero value is Internal, so that an error
// nobody classified is never shown to a caller.
type Kind uint8

// The kinds, from the one that must never leave the service to those that
// tell callers what to do next.
const (
	Internal        Kind = iota // a defect or a broken dependency; logged, never shown
	Invalid                     // the caller sent something that breaks a rule
	Unauthenticated             // who the caller is could not be established
	Forbidden                   // the caller is known and may not do this
	NotFound                    // there is no such thing, or none the caller may see
	Conflict                    // what is stored stands against it
	Stale                       // a condition of the caller does not hold: what is stored has changed
	Exhausted                   // a limit is used up; RetryAfter tells until when
	Unsupported                 // this service, as it is set up, does not do this
	Unavailable                 // a dependency is away; the same call may succeed later
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

// Code is a stable word for one failure, for programs to act on, such as
// "invalid_token". Empty where a transport has no use for one.
type Code string

// Error is a failure with its kind and a sentence for the caller.
type Error struct {
	Kind       Kind
	Code       Code
	Message    string         // for the caller: lower case, without a full stop
	Details    map[string]any // optional facts for the caller, by name
	RetryAfter time.Duration  // for Exhausted and Unavailable: when to try again; 0 = not known
	Err        error          // the cause; logged, never shown
}

// New returns a failure of a kind, with a sentence for the caller.
func New(kind Kind, code Code, message string) *Error {
	return &Error{Kind: kind, Code: code, Message: message}
}

// Newf is New with a format.
func Newf(kind Kind, code Code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns a failure that keeps err as its cause. The caller sees the
// message, the log sees both.
func Wrap(kind Kind, code Code, message string, err error) *Error {
	return &Error{Kind: kind, Code: code, Message: message, Err: err}
}

// WithDetail returns e after adding one fact for the caller.
func (e *Error) WithDetail(name string, value any) *Error {
	if e.Details == nil {
		e.Details = make(map[string]any, 1)
	}
	e.Details[name] = value
	return e
}

// After returns e after setting when the caller may try again.
func (e *Error) After(d time.Duration) *Error {
	e.RetryAfter = d
	return e
}

// Error returns the sentence for the caller and, behind it, the cause.
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

// As returns the failure in err's chain, if there is one.
func As(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// KindOf returns the kind of err: Internal for any error that is no fault.
func KindOf(err error) Kind {
	if e, ok := As(err); ok {
		return e.Kind
	}
	return Internal
}

// Is tells whether err is a fault of the kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
