package oauth

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// maxURL is the greatest length of a URL, in characters.
const maxURL = maxResource

// isURLText reports whether a text has a length and characters that a URL may have (RFC 3986), so that all
// who read it read the same.
func isURLText(s string) bool {
	return s != "" && len(s) <= maxURL && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r)
	})
}

// isThisComputer reports whether the host of a URL, which may have a port, is the computer of the one who
// opens it (RFC 8252, section 7.3).
func isThisComputer(u *url.URL) bool {
	host := strings.TrimSuffix(u.Host, ":"+u.Port())
	return host == "localhost" || host == "127.0.0.1" || host == "[::1]"
}

// schemeForm is the form of schemes, in lower case.
var schemeForm = regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`)

// dangerous are schemes by which a redirect runs or reads something in the browser.
var dangerous = []string{"javascript", "data", "vbscript", "file", "blob", "filesystem", "about", "view-source", "ws", "wss", "ftp"}

// CheckRedirectURI returns fault.Invalid for a text that is no redirect URI (contract T-8): https, or http on
// this computer, or any other scheme of a registered client but those that are dangerous in a browser.
func CheckRedirectURI(s string, registered bool) error {
	u, err := url.Parse(s)
	scheme, rest, _ := strings.Cut(s, ":")
	switch {
	case err != nil || !isURLText(s) || !schemeForm.MatchString(scheme) || rest == "":
		return fault.New(fault.Invalid, "a redirect URI must be a URL of at most 2,048 characters, with a scheme in lower case")
	case u.User != nil || strings.Contains(s, "#"):
		return fault.New(fault.Invalid, "a redirect URI must not have a user or a fragment")
	case scheme == "https" && u.Hostname() != "", scheme == "http" && isThisComputer(u):
		return nil
	case scheme == "https":
		return fault.New(fault.Invalid, "a redirect URI with https must have a host")
	case scheme == "http":
		return fault.New(fault.Invalid, "a redirect URI with http must have the host localhost, 127.0.0.1 or [::1]")
	case slices.Contains(dangerous, scheme):
		return fault.Newf(fault.Invalid, "a redirect URI must not have the scheme %s", scheme)
	case !registered:
		return fault.New(fault.Invalid, "a redirect URI must begin with https://, or with http:// and a host of this computer")
	}
	return nil
}
