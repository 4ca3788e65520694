package allowlist

import (
	"errors"
	"net/url"
	"strings"

	"golang.org/x/net/publicsuffix"
)

var errNoURL = errors.New("a remote has no URL")

const (
	errWildcardURL refusal = "the URL of a remote contains a \"*\", which a client would take for any text"
	errOpenHost    refusal = "the URL of a remote has a user, or a variable as its scheme, port or the end of its host, so that other hosts would be allowed"
	errSharedHost  refusal = "the URL of a remote has a variable before a public suffix, such as co.uk or github.io, below which anybody can have a host"
)

// anyText is what clients take for any text in the URL of an entry.
const anyText = "*"

// pattern returns the URL of a remote with a "*" in place of each variable. It returns an error if
// the pattern would match the URLs of hosts that the publisher of the document may not have.
func (r remote) pattern() (string, error) {
	switch {
	case r.url.value == "":
		return "", errNoURL
	case strings.Contains(r.url.value, anyText):
		return "", errWildcardURL
	}
	pattern, _ := replaceVariables(r.url.value, func(string) (string, bool) { return anyText, true })
	u, err := url.Parse(pattern)
	if err != nil || u.Host == "" || u.User != nil {
		return "", errOpenHost
	}
	host := u.Hostname()
	if !strings.Contains(host, anyText) {
		return pattern, nil
	}
	fixed := strings.ToLower(host[strings.LastIndex(host, anyText)+len(anyText):])
	if !strings.HasPrefix(fixed, ".") || strings.HasSuffix(fixed, ".") || isAddress(fixed) {
		return "", errOpenHost
	}
	// "*.example.com" has an owner; "*.com" and "*.github.io" have many.
	if _, err := publicsuffix.EffectiveTLDPlusOne(fixed[1:]); err != nil {
		return "", errSharedHost
	}
	return pattern, nil
}

// isAddress reports whether a host that ends with a text is an IPv4 address (URL Standard, 3.5).
func isAddress(end string) bool {
	last := end[strings.LastIndex(end, ".")+1:]
	return last != "" && strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")
}
