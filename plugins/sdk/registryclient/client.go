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
)

// Timeout is how long a whole check may take (contract R-60).
const Timeout = 10 * time.Second

// margin is how much sooner than the host's deadline a check ends, so that its answer still arrives.
const margin = 250 * time.Millisecond

// Config says which registries a plugin may reach.
type Config struct {
	// Defaults are the base URLs of the public registry, https only; the first is meant by a claim that names none. May be
	// empty, where there is no public registry.
	Defaults []string
	// Environment looks up a variable of the process, as os.Getenv does; [Variable], HTTPS_PROXY, HTTP_PROXY and NO_PROXY are
	// read. Nil: no private registries, and no proxy.
	Environment func(name string) string
	// RawToken sends a token without the word "Bearer" before it.
	RawToken bool
}

// Client reaches the registries of one type. It may be used from many goroutines at once.
type Client struct {
	registries []registry // configured ones first: they carry the credentials
	standard   *registry  // for claims without a base URL; nil if there is none
	guarded    http.RoundTripper
	open       http.RoundTripper
	rawToken   bool
}

// Open returns a client. The error names what is wrong with the configuration, and shows no secret of it. Nothing is connected
// to before the first request.
func Open(config Config) (*Client, error) {
	c := &Client{rawToken: config.RawToken}
	var find proxies
	if config.Environment != nil {
		var err error
		if c.registries, err = private(config.Environment(Variable)); err != nil {
			return nil, err
		}
		if find, err = proxiesOf(config.Environment); err != nil {
			return nil, err
		}
	}
	for i, raw := range config.Defaults {
		at, err := parseBase(raw)
		if err != nil || at.Scheme != "https" {
			return nil, fmt.Errorf("default base URL %q is not an https base URL", raw)
		}
		c.registries = append(c.registries, registry{url: at})
		if i == 0 {
			c.standard = c.find(at)
		}
	}
	c.guarded = withProxies(guardedDial(), find, publicHost)
	c.open = withProxies((&net.Dialer{Timeout: dialTimeout}).DialContext, find, anyHost)
	return c, nil
}

// find returns the registry with the base URL, nil if there is none: a configured one before a default.
func (c *Client) find(at *url.URL) *registry {
	i := slices.IndexFunc(c.registries, func(r registry) bool { return r.url.String() == at.String() })
	if i < 0 {
		return nil
	}
	found := c.registries[i]
	return &found
}

// Within returns ctx with the bound of a whole check: [Timeout], or a little less than what ctx has left.
func Within(ctx context.Context) (context.Context, context.CancelFunc) {
	left := Timeout
	if deadline, ok := ctx.Deadline(); ok {
		rest := time.Until(deadline)
		left = min(left, rest-min(margin, rest/10))
	}
	return context.WithTimeout(ctx, left)
}

// Base returns the registry that a claim names by its base URL, the first default for an empty one. The error is a refusal that
// names the base URLs that are allowed.
func (c *Client) Base(claimed string) (*Base, error) {
	if claimed == "" {
		if c.standard == nil {
			return nil, sdk.Refuse("registryBaseUrl is needed, %s", c.allowed())
		}
		return &Base{client: c, registry: *c.standard}, nil
	}
	at, err := parseBase(claimed)
	if err != nil {
		return nil, sdk.Refuse("registryBaseUrl is not allowed: %v; %s", err, c.allowed())
	}
	found := c.find(at)
	if found == nil {
		return nil, sdk.Refuse("registryBaseUrl %q is not allowed, %s", shortened(at.String()), c.allowed())
	}
	return &Base{client: c, registry: *found}, nil
}

// At returns the place of a file that a claim names by its whole address: the configured registry that the address is below,
// else the host itself, if it is https and public. The error is a refusal.
func (c *Client) At(address string) (*Base, error) {
	at, err := url.Parse(address)
	if err != nil || at.Opaque != "" || at.Hostname() == "" || at.User != nil || leaves(at) {
		return nil, sdk.Refuse("%q is not an absolute URL without user and dot segments", shortened(address))
	}
	for _, r := range c.registries {
		b := Base{client: c, registry: r}
		if b.below(at) {
			return &b, nil
		}
	}
	if at.Scheme != "https" {
		return nil, sdk.Refuse("%q is not an https URL", shortened(address))
	}
	return &Base{client: c, registry: registry{url: &url.URL{Scheme: "https", Host: canonicalHost(at)}}}, nil
}

// allowed names the base URLs there are.
func (c *Client) allowed() string {
	var names []string
	for _, r := range c.registries {
		if name := r.url.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "and none is configured"
	}
	return "only " + strings.Join(names, ", ")
}

// shortened cuts s so that the rest of a refusal fits too.
func shortened(s string) string {
	const most = 120
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
