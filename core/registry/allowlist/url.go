package allowlist

import (
	"errors"
	"net/url"
	"strings"
)

var (
	errNoURL       = errors.New("a remote has no URL")
	errWildcardURL = errors.New("the URL of a remote contains a \"*\", which a client would take for any text")
	errOpenHost    = errors.New("the URL of a remote has a user, or a variable as its scheme, port or the end of its host, so that other hosts would be allowed")
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
	// A label after the last variable, and one more: "*.example.com" has an owner, "*.com" has not.
	fixed := host[strings.LastIndex(host, anyText)+len(anyText):]
	if !strings.HasPrefix(fixed, ".") || strings.Count(fixed, ".") < 2 {
		return "", errOpenHost
	}
	return pattern, nil
}
