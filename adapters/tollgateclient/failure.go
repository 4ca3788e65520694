package tollgateclient

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// NeedsStepUp reports whether a call was refused only because the trust level of its session is too
// low.
func NeedsStepUp(err error) bool {
	f, ok := fault.As(err)
	return ok && f.Code == auth.CodeInsufficientTrust
}

// notConnected is the error of a call that ended before there was a connection to send it on, with TLS
// where the address is https.
type notConnected struct{ error }

// Unwrap returns what prevented the connection.
func (e notConnected) Unwrap() error { return e.error }

// NeverSent reports whether a call failed before it could reach the service.
func NeverSent(err error) bool {
	var never notConnected
	return errors.As(err, &never)
}

func isUntrusted(err error) bool {
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &untrusted)
}

// connectionError classifies the error of a call without a response.
func (c *Client) connectionError(ctx context.Context, err error) error {
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err // the message below contains the address
	}
	switch {
	case c.local:
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("call %s: %w", c.base, ctx.Err())
	}
	if errors.Is(err, errRedirect) {
		return fault.Newf(fault.Invalid, "%s: %s", c.base, err)
	}
	message := c.base.String() + " cannot be reached"
	if isUntrusted(err) {
		message += ": its certificate is not trusted (trust its authority with --ca-cert FILE)"
	}
	return fault.Wrap(fault.Unavailable, message, err)
}

// errorBody is the body of an error. The registry returns only a message, in error; authentication
// returns a code, a message and details.
type errorBody struct {
	Error   string `json:"error"`
	Message string `json:"message"`
	Details struct {
		LockoutUntil string `json:"lockoutUntil"`
		ManagedBy    string `json:"managedBy"`
	} `json:"details"`
}

// lockedForeverYear is the year in the end time of a lock that only an operator can remove.
const lockedForeverYear = "9999-"

// responseError returns the error that a response describes.
func (c *Client) responseError(resp *http.Response, text []byte) error {
	var b errorBody
	if json.Unmarshal(text, &b) != nil || b.Error == "" {
		return c.unexpectedStatus(resp.StatusCode)
	}
	f := fault.New(faultKind(resp.StatusCode), printableText(b.Error))
	if b.Message != "" {
		f.Code, f.Message = fault.Code(b.Error), printableText(b.Message)
	}
	if strings.Contains(resp.Header.Get("WWW-Authenticate"), `error="insufficient_user_authentication"`) { // RFC 9470
		f.Code = auth.CodeInsufficientTrust
	}
	switch until := b.Details.LockoutUntil; {
	case strings.HasPrefix(until, lockedForeverYear):
		f.Message += ", until an operator unlocks it"
	case until != "":
		f.Message += ", until " + printableText(until)
	}
	if b.Details.ManagedBy != "" {
		f.Message = "the file of " + printableText(b.Details.ManagedBy) + " manages this: change it there, or give --managed"
	}
	if f.RetryAfter = pause.RetryAfter(resp.Header); f.RetryAfter > 0 {
		f.Message += fmt.Sprintf(": try again in %s", f.RetryAfter)
	}
	return f
}

// unexpectedStatus returns the error for a response that does not come from a tollgate service, but
// from a proxy or another program.
func (c *Client) unexpectedStatus(status int) error {
	hint := ""
	if status == http.StatusNotFound || status == http.StatusMethodNotAllowed {
		hint = ", unlike a tollgate service: check the address"
	}
	return fault.Newf(faultKind(status), "%s answered %s%s", c.base,
		strings.TrimRight(fmt.Sprintf("%d %s", status, http.StatusText(status)), " "), hint)
}

// faultKinds are the kinds of faults by their status.
var faultKinds = map[int]fault.Kind{
	http.StatusUnauthorized: fault.Unauthenticated, http.StatusForbidden: fault.Forbidden, http.StatusNotFound: fault.NotFound,
	http.StatusConflict: fault.Conflict, http.StatusPreconditionFailed: fault.Stale, http.StatusTooManyRequests: fault.Exhausted,
	http.StatusNotImplemented: fault.Unsupported, http.StatusBadGateway: fault.Unavailable,
	http.StatusServiceUnavailable: fault.Unavailable, http.StatusGatewayTimeout: fault.Unavailable,
}

func faultKind(status int) fault.Kind {
	kind, known := faultKinds[status]
	switch {
	case known:
		return kind
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError:
		return fault.Invalid
	}
	return fault.Internal
}

// maxMessage is the maximum number of characters that are shown of a service's message.
const maxMessage = 2000

// printableText replaces control characters, so that the text of a service cannot control the
// terminal, and shortens long text.
func printableText(s string) string {
	r := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s))
	return string(r[:min(len(r), maxMessage)])
}

// HasCode reports whether the service refused a call with a code.
func HasCode(err error, code fault.Code) bool {
	f, ok := fault.As(err)
	return ok && f.Code == code
}
