package registryclient

import (
	"errors"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

// Reason is the class of a failed request.
type Reason uint8

// The reasons.
const (
	// Unreachable: no complete response arrived, for example before the deadline.
	Unreachable Reason = iota
	// NotFound: 404, 410 or 451.
	NotFound
	// Denied: 401, 402, 403 or 407; the registry requires credentials or does not accept those that
	// were sent.
	Denied
	// Throttled: 429, 425 or 408.
	Throttled
	// ServerError: 5xx.
	ServerError
	// Unexpected: any other status but 200.
	Unexpected
	// TooLarge: the body has more bytes than the request allowed, compressed or not.
	TooLarge
	// Malformed: the body cannot be decoded or decompressed.
	Malformed
	// ForbiddenRedirect: a redirect to another host or another scheme, or too many redirects.
	ForbiddenRedirect
	// ForbiddenAddress: the host resolves to an address that is not public, and its base URL is not
	// configured.
	ForbiddenAddress
	// ForbiddenURL: the URL is outside the registry, or its path could leave it.
	ForbiddenURL
)

// Error is a request without a usable response.
type Error struct {
	Reason     Reason
	Host       string        // the requested host, with the port of the URL if it has one
	Status     int           // of the response; 0 if there was no response
	RetryAfter time.Duration // the delay that the registry requests, at most a day; 0 if it requests no delay
	Err        error         // the cause; may be nil
}

// Error returns a message that names the host. Logs show it, and also publishers if the failure is
// not transient.
func (e *Error) Error() string {
	switch e.Reason {
	case Throttled, ServerError:
		if e.RetryAfter > 0 {
			return fmt.Sprintf("%s returned status %d and requests a delay of %s", e.Host, e.Status, e.RetryAfter)
		}
		return fmt.Sprintf("%s returned status %d", e.Host, e.Status)
	case NotFound, Unexpected:
		return fmt.Sprintf("%s returned status %d", e.Host, e.Status)
	case Denied:
		return fmt.Sprintf("%s denied access with status %d", e.Host, e.Status)
	case TooLarge:
		return fmt.Sprintf("the response of %s is too large: %v", e.Host, e.Err)
	case Malformed:
		return fmt.Sprintf("the response of %s is malformed: %v", e.Host, e.Err)
	case ForbiddenRedirect:
		return fmt.Sprintf("%s returned a redirect that is not allowed: %v", e.Host, e.Err)
	case ForbiddenAddress:
		return fmt.Sprintf("%s resolves to an address that is not public", e.Host)
	case ForbiddenURL:
		return fmt.Sprintf("the URL of the request to %s is outside the registry", e.Host)
	}
	return fmt.Sprintf("%s cannot be reached: %v", e.Host, e.Err)
}

// RegistryHost returns the host, for the publisher.
func (e *Error) RegistryHost() string { return e.Host }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Transient reports whether a later try may succeed.
func (e *Error) Transient() bool {
	switch e.Reason {
	case Unreachable, Throttled, ServerError, Malformed:
		return true
	case Unexpected: // a proxy may temporarily return 204 or an unusual 3xx
		return e.Status < 400
	}
	return false
}

// Is reports whether err is an [Error] with that reason.
func Is(err error, reason Reason) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == reason
}

// Verdict converts an error of this package to the result of [sdk.Ownership]: a refusal if a later
// try cannot succeed, and otherwise err with the delay that the registry requests. It returns other
// errors and nil unchanged. 429 and 5xx are transient (contract R-60).
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
