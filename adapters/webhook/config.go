package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Config contains the settings of requests to webhooks (contract C-53).
type Config struct {
	Networks []netip.Prefix `env:"WEBHOOK_NETWORKS" desc:"networks in which receivers of webhooks may be, although they are not public; they are connected to without HTTPS_PROXY"`
	Proxy    string         `env:"HTTPS_PROXY" secret:"true" desc:"the http or https URL of a proxy for requests to webhooks; the plugins have their own (docs/plugins.md)"`
}

// Validate returns an error that names the variable whose value is malformed. It does not show the
// URL of the proxy, which may have a password.
func (c Config) Validate() error {
	for _, network := range c.Networks {
		if !network.IsValid() {
			return fmt.Errorf("WEBHOOK_NETWORKS: %v is not a network", network)
		}
	}
	if c.Proxy != "" && c.proxyURL() == nil {
		return errors.New("HTTPS_PROXY must be the http or https URL of a proxy")
	}
	return nil
}

// proxyURL returns the URL of the proxy; nil without one. Its scheme may be left out.
func (c Config) proxyURL() *url.URL {
	text := c.Proxy
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil
	}
	return u
}

// proxyError is the status with which a proxy has refused to connect to a receiver.
type proxyError int

// Error returns a sentence.
func (e proxyError) Error() string {
	return fmt.Sprintf("the proxy refused the connection with the status %d", int(e))
}

// checkProxy returns an error unless a proxy has connected.
func checkProxy(_ context.Context, _ *url.URL, _ *http.Request, response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return proxyError(response.StatusCode)
	}
	return nil
}
