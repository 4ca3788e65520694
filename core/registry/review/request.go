package review

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

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
		return "", fault.New(fault.Invalid, "reason is required: say in a sentence what you need the server for")
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
