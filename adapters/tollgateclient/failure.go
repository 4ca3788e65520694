package tollgateclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// NeedsStepUp reports whether a call was refused for the trust of its session alone.
func NeedsStepUp(err error) bool {
	f, ok := fault.As(err)
	return ok && f.Code == auth.CodeInsufficientTrust
}

// NeverSent reports whether a call failed before the service can have seen any of it.
func NeverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// unreachable classifies a failure without an answer.
func (c *Client) connectionError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("call %s: %w", c.base, ctx.Err())
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err // the address is said once
	}
	if errors.Is(err, errRedirect) {
		return fault.Newf(fault.Invalid, "", "%s: %s", c.base, err)
	}
	return fault.Wrap(fault.Unavailable, "", c.base.String()+" cannot be reached", err)
}

// refusalBody is the body of an error: the registry's holds a sentence alone, that of authentication a code, a
// sentence and facts.
type errorBody struct {
	Error   string `json:"error"`
	Message string `json:"message"`
	Details struct {
		LockoutUntil string `json:"lockoutUntil"`
	} `json:"details"`
}

// endOfTime is the year until which an account is locked that only an operator unlocks.
const lockedForeverYear = "9999-"

// refusal returns what an answer says that is no success.
func (c *Client) responseError(resp *http.Response, text []byte) error {
	var b errorBody
	if json.Unmarshal(text, &b) != nil || b.Error == "" {
		return c.unexpectedStatus(resp.StatusCode)
	}
	f := fault.New(faultKind(resp.StatusCode), "", printableText(b.Error))
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
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		f.RetryAfter = time.Duration(s) * time.Second
		f.Message += fmt.Sprintf(": try again in %s", f.RetryAfter)
	}
	return f
}

// foreign tells of an answer that is no tollgate service's: a proxy's before it, or that of something else.
func (c *Client) unexpectedStatus(status int) error {
	hint := ""
	if status == http.StatusNotFound || status == http.StatusMethodNotAllowed {
		hint = ", as no tollgate service does: is the address right?"
	}
	return fault.Newf(faultKind(status), "", "%s answered %s%s", c.base, strings.TrimRight(fmt.Sprintf("%d %s", status, http.StatusText(status)), " "), hint)
}

// kind returns the kind of failure that a status stands for.
func faultKind(status int) fault.Kind {
	switch status {
	case http.StatusUnauthorized:
		return fault.Unauthenticated
	case http.StatusForbidden:
		return fault.Forbidden
	case http.StatusNotFound:
		return fault.NotFound
	case http.StatusConflict:
		return fault.Conflict
	case http.StatusTooManyRequests:
		return fault.Exhausted
	case http.StatusNotImplemented:
		return fault.Unsupported
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fault.Unavailable
	}
	if status >= http.StatusBadRequest && status < http.StatusInternalServerError {
		return fault.Invalid
	}
	return fault.Internal
}

// maxSentence is the most characters of a service's sentence that are shown.
const maxMessage = 2000

// plain keeps what a service says from steering a terminal.
func printableText(s string) string {
	r := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s))
	return string(r[:min(len(r), maxMessage)])
}
