package settings_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// TestOAuth has what the settings of the authorization server refuse, each with the variable to change
// (contract T-1, T-6).
func TestOAuth(t *testing.T) {
	t.Parallel()
	on := []string{"OAUTH=on", "PUBLIC_URL=https://tools.example.com"}
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"off needs nothing":     {[]string{"OAUTH=off"}, ""},
		"on":                    {on, ""},
		"on localhost":          {[]string{"OAUTH=on", "PUBLIC_URL=http://127.0.0.1:8080"}, ""},
		"hosts and documents":   {append(on, "OAUTH_CLIENT_HOSTS=vscode.dev, claude.ai:8443,https://a.example/c.json"), ""},
		"neither on nor off":    {[]string{"OAUTH=maybe"}, "OAUTH"},
		"no origin":             {[]string{"OAUTH=on"}, "PUBLIC_URL"},
		"a path":                {[]string{"OAUTH=on", "PUBLIC_URL=https://tools.example.com/gate"}, "PUBLIC_URL"},
		"a query":               {[]string{"OAUTH=on", "PUBLIC_URL=https://tools.example.com?x=1"}, "PUBLIC_URL"},
		"plain":                 {[]string{"OAUTH=on", "PUBLIC_URL=http://tools.example.com"}, "PUBLIC_URL"},
		"no console":            {append(on, "CONSOLE=off"), "CONSOLE"},
		"another one is named":  {append(on, "OAUTH_AUTHORIZATION_SERVERS=https://login.example.com"), "OAUTH_AUTHORIZATION_SERVERS"},
		"one audience for both": {append(on, "TOKEN_AUDIENCE=https://tools.example.com"), "TOKEN_AUDIENCE"},
		"unknown clients":       {append(on, "OAUTH_CLIENTS=all"), "OAUTH_CLIENTS"},
		"a host with a path":    {append(on, "OAUTH_CLIENT_HOSTS=claude.ai/c.json"), "OAUTH_CLIENT_HOSTS"},
		"a host with a user":    {append(on, "OAUTH_CLIENT_HOSTS=claude.ai@evil.example"), "OAUTH_CLIENT_HOSTS"},
		"no host":               {append(on, "OAUTH_CLIENT_HOSTS=claude.ai,"), "OAUTH_CLIENT_HOSTS"},
		"other resources":       {append(on, "OAUTH_RESOURCES=all"), "OAUTH_RESOURCES"},
		"consent never":         {append(on, "OAUTH_CONSENT=never"), "OAUTH_CONSENT"},
		"reuse by all":          {append(on, "ID_JAG_REUSE=all"), "ID_JAG_REUSE"},
	} {
		s, err := settings.Read(c.env)
		if c.want == "" {
			must.Succeed(t, err)
			if on := strings.HasPrefix(c.env[0], "OAUTH=on"); s.OAuth.On != on || s.Proxies.Issues != on {
				t.Errorf("%s: on is %t, challenges name the issuer: %t", name, s.OAuth.On, s.Proxies.Issues)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want+":") && !strings.HasPrefix(err.Error(), c.want+" ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestIssuerIsAnOrigin wants the issuer as clients compare it, however PUBLIC_URL is written.
func TestIssuerIsAnOrigin(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://tools.example.com/": "https://tools.example.com", "HTTPS://Tools.Example.com:443": "https://tools.example.com",
		"https://tools.example.com:8443": "https://tools.example.com:8443", "http://localhost:80": "http://localhost",
	} {
		s, err := settings.Read([]string{"OAUTH=on", "PUBLIC_URL=" + url})
		if err != nil || s.OAuth.Issuer != want || s.Tokens.OAuthIssuer != want {
			t.Errorf("%s: %q and %q, %v", url, s.OAuth.Issuer, s.Tokens.OAuthIssuer, err)
		}
	}
}
