package settings

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

// oauthBindings returns the settings of the authorization server.
func (s *Settings) oauthBindings() []binding {
	c := &s.OAuth
	clients := func(text string) (authorizing.Clients, error) {
		return fault.OneOf("clients", text, authorizing.ClientsRegistered, authorizing.ClientsOfHosts, authorizing.ClientsOpen)
	}
	return []binding{
		s.bind(&c.On, "OAUTH", "off", "the authorization server, which issues tokens for approved tool servers: off or on; on needs PUBLIC_URL").
			as("text", oneOf(&c.On, "on", "off")),
		s.bind(&c.Clients, "OAUTH_CLIENTS", string(authorizing.ClientsOfHosts),
			"which clients there may be besides the registered ones: registered (no others), hosts (with a document at OAUTH_CLIENT_HOSTS), open (with any document)").
			as("text", word(&c.Clients, clients, "registered, hosts or open")),
		s.bind(&c.Hosts, "OAUTH_CLIENT_HOSTS", "vscode.dev,claude.ai",
			"hosts of the documents of clients, or whole addresses of documents, separated by commas; a port other than 443 is part of the host").
			as("a comma-separated list", documentHosts(&c.Hosts)),
		s.bind(&c.AllListed, "OAUTH_RESOURCES", "declared",
			"declared: tokens are issued for the resources that operators have declared; listed: also for each https remote of a listed version").
			as("text", oneOf(&c.AllListed, "listed", "declared")),
		s.bind(&c.AlwaysAsk, "OAUTH_CONSENT", "remember", "remember: a person agrees to a client once in 90 days; always: each time").
			as("text", oneOf(&c.AlwaysAsk, "always", "remember")),
		s.bind(&c.ReuseByClient, "ID_JAG_REUSE", "off",
			"off: an assertion of a company provider is good once; client: the same client may use it again until it ends").
			as("text", oneOf(&c.ReuseByClient, "client", "off")),
	}
}

// documentHosts returns a function that sets a field to the hosts, and the addresses of documents, of a list.
func documentHosts(field *[]string) func(string) error {
	return func(text string) error {
		list := strings.Split(text, ",")
		for i, one := range list {
			list[i] = strings.TrimSpace(one)
			at, err := url.Parse("https://" + strings.TrimPrefix(list[i], "https://"))
			if err != nil || at.Hostname() == "" || at.User != nil || strings.ContainsAny(list[i], " @!?#") ||
				at.Path != "" && !strings.HasPrefix(list[i], "https://") {
				return fmt.Errorf("%.60q is neither a host nor the https address of a document", list[i])
			}
		}
		*field = list
		return nil
	}
}

// completeOAuth sets what the authorization server takes from settings of others.
func (s *Settings) completeOAuth() {
	in := &s.SignIn
	s.OAuth.ReuseGrace, s.OAuth.SessionTTL, s.OAuth.SessionMaxAge = in.RefreshReuseGrace, in.RefreshTokenTTL, in.RefreshTokenMaxAge
	s.OAuth.Issuer = originOf(s.IDTokens.PublicURL)
	s.Proxies.Issues = s.OAuth.On
	if s.OAuth.On {
		s.Tokens.OAuthIssuer = s.OAuth.Issuer
	}
}

// originOf returns a URL as the origin that clients compare: in lower case, without the usual port and a slash.
func originOf(text string) string {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil {
		return text
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if usual := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]; usual != "" {
		u.Host = strings.TrimSuffix(u.Host, usual)
	}
	return u.String()
}

// validateOAuth returns an error that begins with the variable whose value does not fit.
func (s *Settings) validateOAuth() error {
	at, err := url.Parse(s.OAuth.Issuer)
	switch {
	case !s.OAuth.On:
		return nil
	case s.OAuth.Issuer == "":
		return errors.New("PUBLIC_URL: OAUTH=on needs it, since clients compare it with the issuer of their tokens")
	case err != nil || at.Path+at.RawQuery+at.Fragment != "":
		return errors.New("PUBLIC_URL: with OAUTH=on it must have no path and no query, since the issuer is its origin")
	case at.Scheme != "https" && !publicdial.IsLoopback(at.Hostname()):
		return errors.New("PUBLIC_URL: with OAUTH=on it must begin with https://; http:// is possible on localhost only")
	case !s.Console.On:
		return errors.New("CONSOLE: with OAUTH=on it must be on, since people sign in and agree there")
	case len(s.IDTokens.AuthorizationServers) > 0:
		return errors.New("OAUTH_AUTHORIZATION_SERVERS: it cannot be set with OAUTH=on: this service is the authorization server")
	case s.Tokens.Audience == s.OAuth.Issuer:
		return errors.New("TOKEN_AUDIENCE: with OAUTH=on it must not be the origin of PUBLIC_URL, which is the audience of other tokens")
	}
	return nil
}
