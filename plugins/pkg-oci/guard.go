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

// maxBody bounds each manifest, configuration and token, in bytes.
const maxBody = 4 << 20

// maxRedirects bounds how often one request is redirected.
const maxRedirects = 3

// guard is the transport of one check: it lets through what goes to the registry, to where the registry says that tokens are
// given, and, redirected, to where the registry keeps its blobs.
type guard struct {
	base   *registryclient.Base
	scheme string
	host   string   // where the registry's API is
	blobs  []string // as in [publicRegistry]

	tokens []string // configured or known hosts that give tokens

	mu     sync.Mutex
	denied string        // a token service that may not be asked
	realms []string      // hosts that the registry sent for tokens
	wait   time.Duration // the longest that a host asked to wait; the library's errors do not have it
}

// RoundTrip implements [http.RoundTripper].
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	host := hostOf(r.URL)
	if host == g.host && r.URL.Scheme != g.scheme {
		// The library tries both schemes where a host looks like a local one; this is not the registry's failure.
		return nil, errors.New("the registry is not reached by " + r.URL.Scheme)
	}
	if redirected := redirects(r); redirected > maxRedirects || redirected > 0 && !g.leadsTo(r.URL) {
		return nil, g.forbidden(registryclient.ForbiddenRedirect, host)
	} else if redirected == 0 && host != g.host && !g.givesTokens(r.URL) {
		g.deny(host)
		return nil, g.forbidden(registryclient.ForbiddenURL, host)
	}
	response, err := g.base.Transport(maxBody, host).RoundTrip(r)
	if err != nil {
		if redirects(r) == 0 && host != g.host && registryclient.Is(err, registryclient.ForbiddenAddress) {
			g.deny(host)
		}
		return nil, err //nolint:wrapcheck // it is classed already, and names the host
	}
	if next := redirect(response); next != nil && !g.leadsTo(next) { // judged here: the library would hide why it goes no further
		_ = response.Body.Close() // nothing of it is wanted
		return nil, g.forbidden(registryclient.ForbiddenRedirect, hostOf(next))
	}
	g.noteWait(response.Header)
	if host == g.host && response.StatusCode == http.StatusUnauthorized {
		g.learn(response.Header)
	}
	return response, nil
}

// noteWait remembers how long an answer asks to wait.
func (g *guard) noteWait(answer http.Header) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wait = max(g.wait, registryclient.RetryAfter(answer))
}

// waits returns the longest that a host asked to wait; 0 where none did.
func (g *guard) waits() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wait
}

func (g *guard) forbidden(reason registryclient.Reason, host string) error {
	return &registryclient.Error{Reason: reason, Host: g.host, Err: fmt.Errorf("to host %.100q", host)}
}

// leadsTo reports whether a redirect to at may be followed.
func (g *guard) leadsTo(at *url.URL) bool {
	host := hostOf(at)
	if host == g.host {
		return at.Scheme == g.scheme && at.User == nil
	}
	return at.Scheme == "https" && at.User == nil &&
		slices.ContainsFunc(g.blobs, func(pattern string) bool { return matches(pattern, host) })
}

// givesTokens reports whether the registry said that tokens are given at this host, and whether it may be asked: a configured or
// known one always, another one only over https and where no credentials would go there.
func (g *guard) givesTokens(at *url.URL) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.User != nil || !slices.Contains(g.realms, hostOf(at)) {
		return false
	}
	if slices.Contains(g.base.TokenHosts(), hostOf(at)) {
		return true // the transport looks at the scheme
	}
	return at.Scheme == "https" && (g.base.Credentials().Empty() || slices.Contains(g.tokens, hostOf(at)))
}

// deny remembers a token service that may not be asked.
func (g *guard) deny(host string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.denied = host
}

// deniedTokens returns the token service that was not asked, because it may not be; empty where there was none.
func (g *guard) deniedTokens() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.denied
}

// learn remembers the hosts of the realms that a challenge names.
func (g *guard) learn(answer http.Header) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, challenge := range answer.Values("WWW-Authenticate") {
		_, rest, _ := strings.Cut(challenge, `realm="`)
		realm, _, _ := strings.Cut(rest, `"`)
		if at, err := url.Parse(realm); err == nil && at.Host != "" && len(g.realms) < maxRedirects {
			g.realms = append(g.realms, hostOf(at))
		}
	}
}

// redirect returns where an answer leads to, nil if it leads nowhere.
func redirect(response *http.Response) *url.URL {
	if response.StatusCode < 300 || response.StatusCode >= 400 {
		return nil
	}
	next, err := response.Location()
	if err != nil {
		return nil
	}
	return next
}

// redirects counts how often a request was redirected.
func redirects(r *http.Request) int {
	hops := 0
	for r.Response != nil && r.Response.Request != nil && hops <= maxRedirects {
		r = r.Response.Request
		hops++
	}
	return hops
}

// hostOf is the host in lower case, without the port that its scheme has anyway.
func hostOf(at *url.URL) string {
	host := strings.ToLower(at.Host)
	switch at.Scheme {
	case "https":
		return strings.TrimSuffix(host, ":443")
	case "http":
		return strings.TrimSuffix(host, ":80")
	}
	return host
}
