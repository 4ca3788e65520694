package allowlist

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
)

var errNoURL = errors.New("a remote has no URL")

const (
	errWildcardURL refusal = "the URL of a remote contains a \"*\", which a client would take for any text"
	errOpenHost    refusal = "the URL of a remote has a user, or a variable as its scheme, port or the end of its host, so that other hosts would be allowed"
	errSharedHost  refusal = "the URL of a remote has a variable before a public suffix, such as co.uk or github.io, below which anybody can have a host"
	errRewritten   refusal = "the path of the URL of a remote has a backslash, or a part like \"..\", which clients rewrite"
)

// anyText is what clients take for any text in the URL of an entry.
const anyText = "*"

// pattern returns the URL of a remote with a "*" in place of each variable, and always with a path:
// clients take an entry without one for every path of its host. It returns an error if the pattern
// would match URLs that the publisher of the document may not have.
func (r remote) pattern() (string, error) {
	switch {
	case r.url.value == "":
		return "", errNoURL
	case strings.Contains(r.url.value, anyText):
		return "", errWildcardURL
	}
	pattern, _ := replaceVariables(r.url.value, func(string) (string, bool) { return anyText, true })
	pattern, _, _ = strings.Cut(strings.TrimSpace(pattern), "#") // as clients do
	u, err := url.Parse(pattern)
	if err != nil || u.Host == "" || u.User != nil {
		return "", errOpenHost
	}
	dots := func(part string) bool { return part == "." || part == ".." }
	if strings.Contains(u.Path, `\`) || slices.ContainsFunc(strings.Split(u.Path, "/"), dots) {
		return "", errRewritten
	}
	if err := checkHost(u.Hostname()); err != nil {
		return "", err
	}
	before, query, _ := strings.Cut(pattern, "?")
	if u.Path == "" {
		before += "/"
	}
	if query != "" {
		before += "?" + query
	}
	return before, nil
}

// checkHost returns an error if a host has a variable in whose place there may be hosts of others.
func checkHost(host string) error {
	if !strings.Contains(host, anyText) {
		return nil
	}
	fixed := strings.ToLower(host[strings.LastIndex(host, anyText)+len(anyText):])
	if !strings.HasPrefix(fixed, ".") || strings.HasSuffix(fixed, ".") || isAddress(fixed) {
		return errOpenHost
	}
	// "*.example.com" has an owner; "*.com" and "*.github.io" have many.
	if _, err := publicsuffix.EffectiveTLDPlusOne(fixed[1:]); err != nil {
		return errSharedHost
	}
	return nil
}

// isAddress reports whether a host that ends with a text is an IPv4 address (URL Standard, 3.5).
func isAddress(end string) bool {
	last := end[strings.LastIndex(end, ".")+1:]
	return last != "" && strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")
}

// defaultPorts are those that clients leave out.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// address is a pattern as clients compare it: with the scheme and the host in lower case, the port
// also if it is the default, and no slash at the end.
type address struct{ host, port, path, query string }

func parseAddress(pattern string) address {
	u, err := url.Parse(pattern)
	if err != nil {
		return address{path: pattern} // cannot be: remote.pattern has parsed it
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	port := cmp.Or(u.Port(), defaultPorts[u.Scheme])
	if u.Port() == "" && strings.Contains(host, anyText) {
		port = anyText // Claude Code: a host with a "*" and no port has every port
	}
	a := address{u.Scheme + "://" + host, port, strings.TrimRight(u.EscapedPath(), "/"), ""}
	if u.RawQuery != "" {
		a.query = "?" + u.RawQuery
	}
	return a
}

// String returns the address as a text whose parts a space separates.
func (a address) String() string { return a.host + " " + a.port + " " + a.path + a.query }

// overlap reports whether there may be an address that both match, as String returns them.
func overlap(a, b string) bool {
	x, y := strings.SplitN(a, " ", 3), strings.SplitN(b, " ", 3)
	for i := range x {
		if !mayMatch(x[i], y[i]) {
			return false
		}
	}
	return true
}
