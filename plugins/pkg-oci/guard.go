package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// maxBody is the size limit of each manifest, configuration and token, in bytes.
const maxBody = 4 << 20

// maxRedirects is the largest number of redirects of one request.
const maxRedirects = 3

// guard is the HTTP transport of one check. It allows requests to the registry, to the token
// service that the registry names, and redirects to the hosts where the registry stores its blobs.
type guard struct {
	base   *registryclient.Base
	scheme string
	host   string   // the host of the registry's API
	blobs  []string // as in [publicRegistry]

	tokenHosts []string // known hosts of token services

	mu   sync.Mutex
	seen observed
}

// observed is what the library's errors do not contain.
type observed struct {
	deniedHost string        // a token service that the plugin may not use
	realmHosts []string      // the hosts of the token services that the registry named
	wait       time.Duration // the longest delay that a host requested
}

// observe records what change adds.
func (g *guard) observe(change func(*observed)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.seen)
}

// observed returns what was recorded.
func (g *guard) observed() (seen observed) {
	g.observe(func(o *observed) { seen = *o })
	return seen
}

// RoundTrip implements [http.RoundTripper].
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	host := hostWithoutPort(r.URL)
	if host == g.host && r.URL.Scheme != g.scheme {
		// The library tries both schemes for a host that looks local. The other scheme is not a
		// failure of the registry.
		return nil, errors.New("the base URL of the registry does not use " + r.URL.Scheme)
	}
	switch redirected := countRedirects(r); {
	case redirected > maxRedirects:
		return nil, g.newError(registryclient.ForbiddenRedirect, fmt.Errorf("more than %d redirects", maxRedirects))
	case redirected > 0 && !g.mayRedirectTo(r.URL):
		return nil, g.redirectError(host)
	case redirected == 0 && host != g.host && !g.mayRequestTokens(r.URL):
		g.observe(func(o *observed) { o.deniedHost = host })
		return nil, g.newError(registryclient.ForbiddenURL, fmt.Errorf("the host is %.100q", host))
	}
	response, err := g.base.Transport(maxBody, host).RoundTrip(r)
	if err != nil {
		if countRedirects(r) == 0 && host != g.host && registryclient.Is(err, registryclient.ForbiddenAddress) {
			g.observe(func(o *observed) { o.deniedHost = host })
		}
		return nil, err //nolint:wrapcheck // already classified, with the host in its text
	}
	// checked here because the library would hide the reason
	if next := redirectTarget(response); next != nil && !g.mayRedirectTo(next) {
		_ = response.Body.Close() // the body is not needed
		return nil, g.redirectError(hostWithoutPort(next))
	}
	g.observe(func(o *observed) {
		o.wait = max(o.wait, registryclient.RetryAfter(response.Header))
		if host == g.host && response.StatusCode == http.StatusUnauthorized {
			o.addRealms(response.Header)
		}
	})
	return response, nil
}

// redirectError returns the error for a redirect to a host that is not allowed.
func (g *guard) redirectError(host string) error {
	return g.newError(registryclient.ForbiddenRedirect, fmt.Errorf("it leads to another host, %.100q", host))
}

func (g *guard) newError(reason registryclient.Reason, cause error) error {
	return &registryclient.Error{Reason: reason, Host: g.host, Err: cause}
}

// mayRedirectTo reports whether a redirect to at may be followed.
func (g *guard) mayRedirectTo(at *url.URL) bool {
	host := hostWithoutPort(at)
	if host == g.host {
		return at.Scheme == g.scheme && at.User == nil
	}
	return at.Scheme == "https" && at.User == nil &&
		slices.ContainsFunc(g.blobs, func(pattern string) bool { return matchesPattern(pattern, host) })
}

// mayRequestTokens reports whether the plugin may request a token from at. The registry must have
// named the host as its token service. A configured host is always allowed; any other host only
// over https, and only if it is a known one or no credentials would be sent.
func (g *guard) mayRequestTokens(at *url.URL) bool {
	if at.User != nil || !slices.Contains(g.observed().realmHosts, hostWithoutPort(at)) {
		return false
	}
	if slices.Contains(g.base.TokenHosts(), hostWithoutPort(at)) {
		return true // the transport checks the scheme
	}
	return at.Scheme == "https" && (g.base.Credentials().Empty() || slices.Contains(g.tokenHosts, hostWithoutPort(at)))
}

// addRealms adds the hosts of the token services in the WWW-Authenticate headers of a response.
func (o *observed) addRealms(answer http.Header) {
	for _, challenge := range answer.Values("WWW-Authenticate") {
		_, rest, _ := strings.Cut(challenge, `realm="`)
		realm, _, _ := strings.Cut(rest, `"`)
		if at, err := url.Parse(realm); err == nil && at.Host != "" && len(o.realmHosts) < maxRedirects {
			o.realmHosts = append(o.realmHosts, hostWithoutPort(at))
		}
	}
}

// redirectTarget returns the URL that a response redirects to, or nil.
func redirectTarget(response *http.Response) *url.URL {
	if response.StatusCode < 300 || response.StatusCode >= 400 {
		return nil
	}
	next, err := response.Location()
	if err != nil {
		return nil
	}
	return next
}

// countRedirects returns the number of redirects that led to r.
func countRedirects(r *http.Request) int {
	hops := 0
	for r.Response != nil && r.Response.Request != nil && hops <= maxRedirects {
		r = r.Response.Request
		hops++
	}
	return hops
}

// hostWithoutPort returns the host of at in lower case, without the default port of its scheme.
func hostWithoutPort(at *url.URL) string {
	host := strings.ToLower(at.Host)
	switch at.Scheme {
	case "https":
		return strings.TrimSuffix(host, ":443")
	case "http":
		return strings.TrimSuffix(host, ":80")
	}
	return host
}
