package mirror

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// maxURL is the greatest length of a URL in bytes.
const maxURL = 2048

// URL is the address of another registry, before /v0.1. The zero value is no URL.
type URL string

// ParseURL returns the address of a registry, without a slash at its end. It returns fault.Invalid
// unless it is an absolute http or https URL without credentials, query and fragment.
func ParseURL(s string) (URL, error) {
	if len(s) > maxURL {
		return "", fault.Newf(fault.Invalid, "url must have at most %d bytes", maxURL)
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.Opaque != "" ||
		strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fault.New(fault.Invalid, "url must be an absolute URL, such as https://registry.example.com")
	}
	base := strings.TrimRight(s, "/")
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return "", fault.New(fault.Invalid, "url must begin with https:// or http://")
	case u.User != nil:
		return "", fault.New(fault.Invalid, "url must not contain a user name or a password")
	case strings.ContainsAny(s, "?#"):
		return "", fault.New(fault.Invalid, "url must not have a query or a fragment")
	case strings.HasSuffix(base, "/v0.1") || strings.HasSuffix(base, "/v0") || strings.HasSuffix(base, "/servers"):
		return "", fault.New(fault.Invalid, "url must end before /v0.1, such as https://registry.example.com")
	}
	return URL(base), nil
}

// token is the part of the address of a view that gives access to it.
var token = regexp.MustCompile(`/t/[^/]+`)

// Latest returns the address of the latest version of a server of the registry.
func (u URL) Latest(name registry.Name) URL {
	return u + URL("/v0.1/servers/"+url.PathEscape(name.String())+"/versions/latest")
}

// Public returns the URL for people who may not know its secret: the token of a view is replaced.
func (u URL) Public() string { return token.ReplaceAllString(string(u), "/t/***") }

// String returns the URL as Public does.
func (u URL) String() string { return u.Public() }

// GoString returns the URL as Public does.
func (u URL) GoString() string { return u.Public() }

// Address returns the whole URL, with its secret.
func (u URL) Address() string { return string(u) }
