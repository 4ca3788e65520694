package toolserver

import (
	"net/url"
	"strings"
)

// maxURL is the greatest length of a URL that CanonicalURL returns.
const maxURL = 2048

// CanonicalURL returns the URL of a tool server as it is compared (contract T-9): scheme and host in
// lower case, without the default port and one slash at the end of the path. It reports false for one that
// is not absolute with a host, is too long, has user information or a fragment, or characters outside of
// ASCII, also encoded ones in its host: some of them have a lower case in ASCII.
func CanonicalURL(text string) (string, bool) {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxURL || u.Host == "" || u.User != nil || strings.Contains(text, "#") ||
		!isVisible(text) || !isVisible(u.Host) {
		return "", false
	}
	port, ok := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]
	if !ok {
		return "", false
	}
	_, rest, _ := strings.Cut(text, "://")
	path := ""
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		path = rest[end:]
	}
	path, query, asked := strings.Cut(path, "?")
	path = strings.TrimSuffix(path, "/")
	if asked {
		path += "?" + query
	}
	return u.Scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Host), port) + path, true
}

// isVisible reports whether a text has only visible characters of ASCII.
func isVisible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
