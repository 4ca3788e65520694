package registryclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

// Variable is the name of the environment variable in which the host passes the private registries
// to a plugin: a JSON list of objects with baseUrl and, optionally, username and password, or
// token. An OCI registry may have tokenHosts.
const Variable = "TOLLGATE_PACKAGE_REGISTRIES"

// maxVariable is the size limit of the variable, in bytes.
const maxVariable = 256 << 10

// Credentials are the credentials of a private registry. Printing them does not show them.
type Credentials struct {
	Username, Password string // both, or neither of them
	Token              string // instead of the other two
}

// String returns a text without the credentials.
func (c Credentials) String() string { return "credentials" }

// GoString returns a text without the credentials.
func (c Credentials) GoString() string { return c.String() }

// Empty reports whether all fields are empty.
func (c Credentials) Empty() bool { return c == Credentials{} }

func (c Credentials) setHeader(h http.Header, raw bool) {
	switch {
	case c.Token != "" && raw:
		h.Set("Authorization", c.Token)
	case c.Token != "":
		h.Set("Authorization", "Bearer "+c.Token)
	case c.Username != "":
		r := http.Request{Header: h}
		r.SetBasicAuth(c.Username, c.Password)
	}
}

// ValidateFor returns an error if the credentials are malformed or must not be sent to at. The
// error does not show them.
func (c Credentials) ValidateFor(at *url.URL) error {
	switch {
	case c.Empty():
		return nil
	case c.Token != "" && (c.Username != "" || c.Password != ""):
		return errors.New("set either a token, or a username and a password")
	case c.Token == "" && (c.Username == "" || c.Password == ""):
		return errors.New("set both a username and a password")
	case strings.Contains(c.Username, ":"):
		return errors.New("the username must not contain a colon")
	case strings.ContainsFunc(c.Username+c.Password+c.Token, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("the credentials must not contain control characters")
	case at.Scheme != "https" && !publicdial.IsLoopback(at.Hostname()):
		return errors.New("credentials require an https base URL")
	}
	return nil
}

// registry is a registry that the plugin may connect to.
type registry struct {
	url         *url.URL // scheme and host in lower case, without the default port and without a trailing slash
	credentials Credentials
	configured  bool     // by the operator; its address may be private
	tokenHosts  []string // configured hosts of the token service, in lower case, without the default port of https
}

// parseRegistries parses the value of [Variable]. An empty value contains no registries. Errors do
// not show secrets.
func parseRegistries(value string) ([]registry, error) {
	if value == "" {
		return nil, nil
	}
	if len(value) > maxVariable {
		return nil, fmt.Errorf("%s must be at most %d bytes", Variable, maxVariable)
	}
	var entries []struct {
		BaseURL  string `json:"baseUrl"`
		Username string `json:"username"`
		Password string `json:"password"`
		Token    string `json:"token"`

		TokenHosts []string `json:"tokenHosts"`
	}
	if err := json.Unmarshal([]byte(value), &entries); err != nil {
		return nil, fmt.Errorf("%s must be a JSON list of registries", Variable) // the cause may show a secret
	}
	var all []registry
	for i, entry := range entries {
		at, err := parseBaseURL(entry.BaseURL)
		if err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", Variable, i+1, err)
		}
		r := registry{url: at, configured: true,
			credentials: Credentials{Username: entry.Username, Password: entry.Password, Token: entry.Token}}
		if err := r.credentials.ValidateFor(at); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", Variable, at, err)
		}
		for _, host := range entry.TokenHosts {
			service, err := url.Parse("https://" + host)
			if err != nil || service.Host != host || service.Hostname() == "" {
				return nil, fmt.Errorf("%s: %s: tokenHosts must be host names without scheme and path", Variable, at)
			}
			r.tokenHosts = append(r.tokenHosts, canonicalHost(service))
		}
		all = append(all, r)
	}
	return all, nil
}

// parseBaseURL parses a base URL and returns it in canonical form, so that two can be compared. The
// error does not show the URL, which may contain a secret.
func parseBaseURL(raw string) (*url.URL, error) {
	at, err := url.Parse(raw)
	switch {
	case err != nil || at.Opaque != "" || at.Hostname() == "":
		return nil, errors.New("a registry base URL must be absolute, with a scheme and a host")
	case at.User != nil || at.RawQuery != "" || at.ForceQuery || at.Fragment != "":
		return nil, errors.New("a registry base URL must not have a user, a query or a fragment")
	case at.Scheme != "https" && at.Scheme != "http":
		return nil, errors.New("a registry base URL must be https or http")
	case hasDotSegment(at):
		return nil, errors.New("a registry base URL must not have dot segments or backslashes in its path")
	}
	at.Host = canonicalHost(at)
	at.Path = strings.TrimRight(at.Path, "/")
	at.RawPath = strings.TrimRight(at.RawPath, "/")
	return at, nil
}

// canonicalHost returns the host of at in lower case, without the default port of its scheme.
func canonicalHost(at *url.URL) string {
	host, port := strings.ToLower(at.Hostname()), at.Port()
	if port == "" || at.Scheme == "https" && port == "443" || at.Scheme == "http" && port == "80" {
		if strings.Contains(host, ":") {
			return "[" + host + "]"
		}
		return host
	}
	return net.JoinHostPort(host, port)
}

// hasDotSegment reports whether the path of at has a dot segment or a character that a server may
// treat as part of one, in any encoding.
func hasDotSegment(at *url.URL) bool {
	path, err := url.PathUnescape(at.Path) // unescaped twice, because a proxy and a server may both unescape it
	if err != nil {
		path = at.Path
	}
	for _, form := range []string{at.Path, path} {
		if strings.ContainsAny(form, "\\\x00\r\n") {
			return true
		}
		for segment := range strings.SplitSeq(form, "/") {
			if segment == "." || segment == ".." {
				return true
			}
		}
	}
	return false
}
