package registryclient

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

// Timeout is the time limit of a whole check (contract R-60).
const Timeout = 10 * time.Second

// dialTimeout is the time limit of one attempt to connect.
const dialTimeout = 5 * time.Second

// deadlineMargin is the time between the end of a check and the host's deadline, so that the result
// still arrives.
const deadlineMargin = 250 * time.Millisecond

// Config declares the registries that a plugin may connect to.
type Config struct {
	// Defaults are the base URLs of the public registry, which must be https. The first one is used
	// for a claim without a base URL. May be empty if there is no public registry.
	Defaults []string
	// Environment returns the value of an environment variable, like [os.Getenv]. Open reads
	// [Variable], HTTPS_PROXY, HTTP_PROXY and NO_PROXY. Nil means no private registries and no
	// proxy.
	Environment func(name string) string
	// RawToken sends tokens without the word "Bearer".
	RawToken bool
}

// Client connects to the registries of one type. It is safe for concurrent use.
type Client struct {
	registries      []registry // configured ones first, because they have the credentials
	defaultRegistry *registry  // for claims without a base URL; may be nil
	guarded         http.RoundTripper
	unguarded       http.RoundTripper
	rawToken        bool
}

// Open returns a client that connects at its first request. It returns an error if a base URL or a
// variable is malformed; the error does not show secrets.
func Open(config Config) (*Client, error) {
	c := &Client{rawToken: config.RawToken}
	var find proxyFinder
	if config.Environment != nil {
		var err error
		if c.registries, err = parseRegistries(config.Environment(Variable)); err != nil {
			return nil, err
		}
		if find, err = parseProxies(config.Environment); err != nil {
			return nil, err
		}
	}
	for i, raw := range config.Defaults {
		at, err := parseBaseURL(raw)
		if err != nil || at.Scheme != "https" {
			return nil, fmt.Errorf("the default base URL %q must be an https URL", raw)
		}
		c.registries = append(c.registries, registry{url: at})
		if i == 0 {
			c.defaultRegistry = c.findRegistry(at)
		}
	}
	c.guarded = withProxies(publicdial.New(publicdial.Config{Timeout: dialTimeout}), find, publicdial.IsPublicHost)
	c.unguarded = withProxies((&net.Dialer{Timeout: dialTimeout}).DialContext, find, allowAnyHost)
	return c, nil
}

// findRegistry returns the registry with that base URL, or nil. It prefers a configured registry to
// a default one.
func (c *Client) findRegistry(at *url.URL) *registry {
	i := slices.IndexFunc(c.registries, func(r registry) bool { return r.url.String() == at.String() })
	if i < 0 {
		return nil
	}
	found := c.registries[i]
	return &found
}

// Within returns ctx with the time limit of a whole check: [Timeout], or slightly before the
// deadline of ctx if that is sooner.
func Within(ctx context.Context) (context.Context, context.CancelFunc) {
	left := Timeout
	if deadline, ok := ctx.Deadline(); ok {
		rest := time.Until(deadline)
		left = min(left, rest-min(deadlineMargin, rest/10))
	}
	return context.WithTimeout(ctx, left)
}

// Base returns the registry with the base URL of a claim, or the first default if the base URL is
// empty. It returns a refusal that lists the allowed base URLs if this one is not allowed.
func (c *Client) Base(claimed string) (*Base, error) {
	if claimed == "" {
		if c.defaultRegistry == nil {
			return nil, sdk.Refuse("registryBaseUrl is missing: %s", c.listAllowed())
		}
		return &Base{client: c, registry: *c.defaultRegistry}, nil
	}
	at, err := parseBaseURL(claimed)
	if err != nil {
		return nil, sdk.Refuse("registryBaseUrl is not valid, %v: %s", err, c.listAllowed())
	}
	found := c.findRegistry(at)
	if found == nil {
		return nil, sdk.Refuse("registryBaseUrl %q is not allowed: %s", shortenText(at.String()), c.listAllowed())
	}
	return &Base{client: c, registry: *found}, nil
}

// CheckAt calls check with the registry at baseURL, the base URL of a claim, and with the time
// limit of a whole check ([Within]). It returns the refusal of [Client.Base] if baseURL is not
// allowed, and otherwise the error of check, converted by [Verdict].
func (c *Client) CheckAt(ctx context.Context, baseURL string, check func(context.Context, *Base) error) error {
	base, err := c.Base(baseURL)
	if err != nil {
		return err
	}
	ctx, cancel := Within(ctx)
	defer cancel()
	return Verdict(check(ctx, base))
}

// At returns the registry of a file that a claim names by its absolute URL: the configured registry
// that the URL is below, or the URL's own host. It returns a refusal if the URL is malformed, or if
// it is not https and not below a configured registry. A host that is not configured must have a
// public address; requests check that.
func (c *Client) At(address string) (*Base, error) {
	at, err := url.Parse(address)
	if err != nil || at.Opaque != "" || at.Hostname() == "" || at.User != nil || hasDotSegment(at) {
		return nil, sdk.Refuse("%q must be an absolute URL without a user and without dot segments",
			shortenText(address))
	}
	for _, r := range c.registries {
		b := Base{client: c, registry: r}
		if b.isBelow(at) {
			return &b, nil
		}
	}
	if at.Scheme != "https" {
		return nil, sdk.Refuse("%q must be an https URL", shortenText(address))
	}
	return &Base{client: c, registry: registry{url: &url.URL{Scheme: "https", Host: canonicalHost(at)}}}, nil
}

// listAllowed returns a sentence that lists the allowed base URLs.
func (c *Client) listAllowed() string {
	var names []string
	for _, r := range c.registries {
		if name := r.url.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "the operator has configured no registry of this type"
	}
	return "use " + strings.Join(names, " or ")
}

// shortenText cuts s so that the rest of a refusal still fits.
func shortenText(s string) string {
	const most = 120
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
