package oauth

import (
	"crypto/sha256"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/auth"
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

// loopbacks are the beginnings of redirect URIs that lead to the person's computer (RFC 8252, section 7.3).
var loopbacks = []string{"http://localhost", "http://127.0.0.1", "http://[::1]"}

// Redirects reports whether people may be sent back to a URI of the client (contract T-8): one that it
// has registered, byte for byte, where one on this computer without a port means every port.
func (c *Client) Redirects(uri string) bool {
	return CheckRedirectURI(uri, !c.ID.IsURL()) == nil &&
		slices.ContainsFunc(c.RedirectURIs, func(own string) bool { return own == uri || isSameButPort(own, uri) })
}

// splitLoopback returns the beginning of a URI on this computer, and what follows it; ok is false for others.
func splitLoopback(uri string) (host, rest string, ok bool) {
	for _, host := range loopbacks {
		if rest, ok := strings.CutPrefix(uri, host); ok && (rest == "" || strings.ContainsAny(rest[:1], ":/?")) {
			return host, rest, true
		}
	}
	return "", "", false
}

// isSameButPort reports whether a URI is that of the client with a port, which that has not.
func isSameButPort(own, uri string) bool {
	host, path, ok := splitLoopback(own)
	if !ok || strings.HasPrefix(path, ":") {
		return false
	}
	rest, ok := strings.CutPrefix(uri, host+":")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	port, err := strconv.ParseUint(rest[:digits], 10, 16)
	return ok && err == nil && port > 0 && rest[digits:] == path
}

// IsLocal reports whether all redirect URIs of the client lead to the person's computer, where any
// program may wait for the answer.
func (c *Client) IsLocal() bool {
	return !slices.ContainsFunc(c.RedirectURIs, func(uri string) bool { return strings.HasPrefix(uri, "https://") })
}

// RedirectHost returns the host of a redirect URI, without a port on this computer; for a scheme of an
// application the scheme, a colon and, if there is one, two slashes and the host.
func RedirectHost(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "http" && isThisComputer(u):
		return u.Hostname()
	case u.Host == "":
		return u.Scheme + ":"
	case u.Scheme != "https":
		return u.Scheme + "://" + strings.ToLower(u.Host)
	}
	return strings.ToLower(u.Host)
}

// AnswerURL returns a redirect URI with parameters; those without a value are left out. What the URI has
// stays as it is.
func AnswerURL(uri string, parameters ...[2]string) string {
	separator := "?"
	if _, query, found := strings.Cut(uri, "?"); found {
		separator = "&"
		if query == "" {
			separator = ""
		}
	}
	for _, p := range parameters {
		if p[1] != "" {
			uri += separator + p[0] + "=" + strings.ReplaceAll(url.QueryEscape(p[1]), "+", "%20") // some clients show it
			separator = "&"
		}
	}
	return uri
}

// IsDocumentURL reports whether the id has the form of the URL of a document (contract T-5).
func (id ClientID) IsDocumentURL() bool { return id.IsURL() && checkDocumentURL(string(id)) == nil }

// Host returns the host of the id of a client by document, with a port other than that of https; empty
// for one that is registered.
func (id ClientID) Host() string {
	if !id.IsURL() {
		return ""
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(string(id), "https://"), "/")
	return strings.TrimSuffix(strings.ToLower(host), ":443")
}

// IsOf reports whether one of the hosts, or of the whole URLs, is that of a client by document
// (contract T-6).
func (id ClientID) IsOf(hosts []string) bool {
	return slices.ContainsFunc(hosts, func(one string) bool {
		return one == string(id) || one != "" && strings.TrimSuffix(strings.ToLower(one), ":443") == id.Host()
	})
}

// Terms returns a hash of where the client sends people and of its keys. A consent holds for one.
func (c *Client) Terms() auth.TokenHash {
	sorted := slices.Sorted(slices.Values(c.RedirectURIs))
	return sha256.Sum256([]byte(strings.Join(append(sorted, string(c.Method), c.JWKSURI, c.JWKS), "\n")))
}
