package oidc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caarlos0/env/v11"

	"github.com/tollgate-dev/tollgate/test/must"
)

const githubIssuer = "https://token.actions.githubusercontent.com"

func TestConfigFromEnvironment(t *testing.T) {
	c, err := env.ParseAsWithOptions[Config](env.Options{Environment: map[string]string{
		"OIDC_ISSUERS": "https://a.example,https://b.example/x/", "PUBLIC_URL": audience,
	}})
	must.Succeed(t, err)
	if len(c.Issuers) != 2 || c.Issuers[1] != "https://b.example/x/" || c.GitHubIssuer != githubIssuer ||
		c.PublicURL != audience {
		t.Errorf("the configuration is %+v", c)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("validate: %v", err)
	}
}

// TestValidateConfig checks issuers as OIDC_ISSUERS and as GITHUB_OIDC_ISSUER.
func TestValidateConfig(t *testing.T) {
	for issuer, valid := range map[string]bool{
		"https://ci.example.com": true, "https://ci.example.com:8443/a/b/": true, "http://127.0.0.1:8080": true,
		"http://localhost": true, "http://[::1]:1": true,
		"": false, "ci.example.com": false, "http://ci.example.com": false, "ftp://ci.example.com": false,
		"https://":             false,
		"https:ci.example.com": false, "https://user@ci.example.com": false, "https://ci.example.com?": false,
		"https://ci.example.com?a=b": false, "https://ci.example.com#": false, "https://ci.example.com#a": false,
		" https://ci.example.com": false, "http://localhost.example.com": false, "https://%zz": false,
	} {
		for name, c := range map[string]Config{
			"OIDC_ISSUERS":       {GitHubIssuer: githubIssuer, Issuers: []string{issuer}},
			"GITHUB_OIDC_ISSUER": {GitHubIssuer: issuer},
		} {
			if err := c.Validate(); (err == nil) != valid || err != nil && !strings.HasPrefix(err.Error(), name) {
				t.Errorf("%s %q: %v, want valid: %v", name, issuer, err, valid)
			}
		}
	}
}

func TestNewNamesVariable(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "ca.pem")
	must.Succeed(t, os.WriteFile(broken, []byte("no certificate"), 0o600))
	for name, c := range map[string]Config{
		"OIDC_ISSUERS": {
			GitHubIssuer: githubIssuer, Issuers: []string{
				"https://a.example", "https://b.example", "https://a.example",
			},
		},
		"PUBLIC_URL": {GitHubIssuer: githubIssuer, PublicURL: "tools.example.com"},
		"OIDC_CA":    {GitHubIssuer: githubIssuer, PublicURL: audience, CAFile: broken},
		"OIDC_CA: ":  {GitHubIssuer: githubIssuer, PublicURL: audience, CAFile: broken + ".missing"},
	} {
		if _, err := New(c, newClock()); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%+v: %v, want an error that begins with %s", c, err, name)
		}
	}
}
