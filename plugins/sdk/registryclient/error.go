package registryclient

import (
	"errors"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

// Reason classes what went wrong with a request.
type Reason uint8

// The reasons.
const (
	// Unreachable: no answer came, or it broke off; the deadline is one cause.
	Unreachable Reason = iota
	// NotFound: 404, 410 or 451.
	NotFound
	// Denied: 401, 402, 403 or 407; the registry wants other credentials, or any.
	Denied
	// Throttled: 429, 425 or 408.
	Throttled
	// ServerError: 5xx.
	ServerError
	// Unexpected: any other status but 200.
	Unexpected
	// TooLarge: more bytes than the request allowed, compressed or not.
	TooLarge
	// Malformed: the body is not what was asked for, or its compression is broken.
	Malformed
	// ForbiddenRedirect: to another host, another scheme, or too often.
	ForbiddenRedirect
	// ForbiddenAddress: the host's name leads to an address that is not public, and its base URL is not configured.
	ForbiddenAddress
	// ForbiddenURL: outside of the registry, or with a path that tries to leave it.
	ForbiddenURL
)

// Error is a request without a usable answer.
type Error struct {
	Reason     Reason
	Host       string        // that was asked, with its port where the URL has one
	Status     int           // of the answer; 0 without one
	RetryAfter time.Duration // as the registry asks, at most a day; 0 = it does not say
	Err        error         // the cause; may be nil
}

// Error returns a sentence that names the host, for logs and, where the reason is lasting, for publishers.
func (e *Error) Error() string {
	switch e.Reason {
	case Throttled, ServerError:
		if e.RetryAfter > 0 {
			return fmt.Sprintf("%s returned %d, and requires a wait of %s", e.Host, e.Status, e.RetryAfter)
		}
		return fmt.Sprintf("%s answers %d now", e.Host, e.Status)
	case NotFound, Unexpected:
		return fmt.Sprintf("%s answers %d", e.Host, e.Status)
	case Denied:
		return fmt.Sprintf("%s denies access to the package with status %d", e.Host, e.Status)
	case TooLarge:
		return fmt.Sprintf("%s answers with more than may be read: %v", e.Host, e.Err)
	case Malformed:
		return fmt.Sprintf("%s answers with what cannot be read: %v", e.Host, e.Err)
	case ForbiddenRedirect:
		return fmt.Sprintf("%s redirects to where no check may go: %v", e.Host, e.Err)
	case ForbiddenAddress:
		return fmt.Sprintf("%s leads to an address that is not public", e.Host)
	case ForbiddenURL:
		return fmt.Sprintf("the request to %s leads outside of the registry", e.Host)
	}
	return fmt.Sprintf("%s cannot be reached: %v", e.Host, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Transient reports whether a later try may get another answer.
func (e *Error) Transient() bool {
	switch e.Reason {
	case Unreachable, Throttled, ServerError, Malformed:
		return true
	case Unexpected: // what is neither success nor the caller's fault, such as 204 or an odd 3xx, is a passing state of a proxy
		return e.Status < 400
	}
	return false
}

// Is reports whether err is an [Error] for the reason.
func Is(err error, reason Reason) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == reason
}

// Verdict returns the result of [sdk.Ownership] for err if the plugin has no sentence of its own:
// nil for nil, a refusal for what no later try will change, and otherwise err, which is no verdict,
// with the time that the registry asks to wait. 429 and 5xx are transient (contract R-60).
func Verdict(err error) error {
	var e *Error
	switch {
	case !errors.As(err, &e):
		return err
	case e.Transient():
		return sdk.RetryAfter(e.RetryAfter, err)
	}
	return sdk.Refuse("the package cannot be checked: %v", e)
}
