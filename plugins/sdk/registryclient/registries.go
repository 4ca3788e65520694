package registryclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Variable names the environment variable by which the host tells a plugin its private registries: a JSON list of objects
// with baseUrl and, where the registry wants them, username and password, or token; an OCI registry may have tokenHosts.
const Variable = "TOLLGATE_PACKAGE_REGISTRIES"

// maxVariable bounds the variable, in bytes.
const maxVariable = 256 << 10

// Credentials open a private registry. Printing them shows nothing.
type Credentials struct {
	Username, Password string // both or neither
	Token              string // instead of the other two
}

// String hides them.
func (c Credentials) String() string { return "credentials" }

// GoString hides them.
func (c Credentials) GoString() string { return c.String() }

// Empty reports whether there are none.
func (c Credentials) Empty() bool { return c == Credentials{} }

func (c Credentials) set(h http.Header, raw bool) {
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

// check refuses what cannot be sent; no sentence shows any of it.
func (c Credentials) check(at *url.URL) error {
	switch {
	case c.Empty():
		return nil
	case c.Token != "" && (c.Username != "" || c.Password != ""):
		return errors.New("give a token, or a username and password, not both")
	case c.Token == "" && (c.Username == "" || c.Password == ""):
		return errors.New("a username needs a password, and a password a username")
	case strings.Contains(c.Username, ":"):
		return errors.New("a username has no colon")
	case strings.ContainsFunc(c.Username+c.Password+c.Token, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("credentials have no control characters")
	case at.Scheme != "https" && !loopback(at.Hostname()):
		return errors.New("credentials are sent over https only")
	}
	return nil
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// registry is an allowed base URL.
type registry struct {
	url         *url.URL // scheme and host in lower case, without default port and trailing slash
	credentials Credentials
	configured  bool     // by the operator, who may name private addresses
	tokenHosts  []string // further configured hosts, in lower case, without the port of https
}

// private reads the value of [Variable]; an empty one holds no registries.
func private(value string) ([]registry, error) {
	if value == "" {
		return nil, nil
	}
	if len(value) > maxVariable {
		return nil, fmt.Errorf("%s is longer than %d bytes", Variable, maxVariable)
	}
	var entries []struct {
		BaseURL  string `json:"baseUrl"`
		Username string `json:"username"`
		Password string `json:"password"`
		Token    string `json:"token"`

		TokenHosts []string `json:"tokenHosts"`
	}
	if err := json.Unmarshal([]byte(value), &entries); err != nil {
		return nil, fmt.Errorf("%s is not a JSON list of registries", Variable) // the cause may show a secret
	}
	var all []registry
	for i, entry := range entries {
		at, err := parseBase(entry.BaseURL)
		if err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", Variable, i+1, err)
		}
		r := registry{url: at, configured: true,
			credentials: Credentials{Username: entry.Username, Password: entry.Password, Token: entry.Token}}
		if err := r.credentials.check(at); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", Variable, at, err)
		}
		for _, host := range entry.TokenHosts {
			service, err := url.Parse("https://" + host)
			if err != nil || service.Host != host || service.Hostname() == "" {
				return nil, fmt.Errorf("%s: %s: tokenHosts must be names of hosts", Variable, at)
			}
			r.tokenHosts = append(r.tokenHosts, canonicalHost(service))
		}
		all = append(all, r)
	}
	return all, nil
}

// parseBase reads a base URL and brings it into the one form in which two are compared. The error shows no part of the URL
// that may be a secret.
func parseBase(raw string) (*url.URL, error) {
	at, err := url.Parse(raw)
	switch {
	case err != nil || at.Opaque != "" || at.Hostname() == "":
		return nil, errors.New("a registry base URL is absolute, with a scheme and a host")
	case at.User != nil || at.RawQuery != "" || at.ForceQuery || at.Fragment != "":
		return nil, errors.New("a registry base URL has no user, query or fragment")
	case at.Scheme != "https" && at.Scheme != "http":
		return nil, errors.New("a registry base URL is https or http")
	case leaves(at):
		return nil, errors.New("a registry base URL has no dot segments or backslashes in its path")
	}
	at.Host = canonicalHost(at)
	at.Path = strings.TrimRight(at.Path, "/")
	at.RawPath = strings.TrimRight(at.RawPath, "/")
	return at, nil
}

// canonicalHost is the host in lower case, without the port that its scheme has anyway.
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

// leaves reports whether the path of at has a segment that a server may take for a way up, however it is encoded.
func leaves(at *url.URL) bool {
	path, err := url.PathUnescape(at.Path) // twice unescaped: a server behind a server unescapes again
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
