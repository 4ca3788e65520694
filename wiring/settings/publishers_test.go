package settings_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

func TestDefaultSettingsOfPublishers(t *testing.T) {
	s, err := settings.Read(nil)
	must.Succeed(t, err)
	p := s.Delegating
	if p.Mode != publisher.ByPolicies || s.PublisherLimits.Proofs != 60 || s.PublisherLimits.Domain != 20 ||
		s.Recheck.Interval != 24*time.Hour || p.UnprovenAfter != 7*24*time.Hour ||
		len(p.Rules.Reserved) != 0 || len(s.IDTokens.Issuers) != 0 || s.IDTokens.PublicURL != "" ||
		s.IDTokens.GitHubIssuer != "https://token.actions.githubusercontent.com" || s.DomainKeys.Resolver != "" ||
		len(s.Warnings) != 0 {
		t.Errorf("the settings are %+v %+v %+v, warnings %q", p, s.IDTokens, s.DomainKeys, s.Warnings)
	}
}

// TestSettingsOfPublishers requires that the settings reach the use cases.
func TestSettingsOfPublishers(t *testing.T) {
	s, err := settings.Read([]string{
		"PUBLISHER_PROOFS=open", "PUBLISHER_PROOF_LIMIT=0", "PUBLISHER_DOMAIN_LIMIT=7", "PUBLISHER_RECHECK=1s",
		"PUBLISHER_UNPROVEN_AFTER=0s",
		"RESERVED_NAMESPACES=com.example/*,io.github.acme/tools", "PUBLISHER_DNS_RESOLVER=192.0.2.1:53",
		"PUBLISHER_PROOF_NETWORKS=10.0.0.0/8,fd00::/8", "PUBLISHER_PROOF_CA=/etc/ca.pem", "OIDC_CA=/etc/ca2.pem",
		"OIDC_ISSUERS=https://ci.example.com,https://id.example.com/a",
		"GITHUB_OIDC_ISSUER=https://git.example.com/_services/token",
		"PUBLIC_URL=https://tools.example.com/x",
	})
	must.Succeed(t, err)
	c := s.Delegating
	if c.Mode != publisher.Open || c.UnprovenAfter != 0 || len(c.Rules.Issuers) != 2 || len(c.Rules.Reserved) != 2 ||
		c.Rules.GitHubIssuer != "https://git.example.com/_services/token" {
		t.Errorf("policies have %+v", c)
	}
	if c := s.Recheck; c.Mode != publisher.Open || c.Interval != time.Second || c.UnprovenAfter != 0 {
		t.Errorf("the search for keys has %+v", c)
	}
	if c := s.Publishing; len(c.Reserved) != 2 {
		t.Errorf("publishing has %+v", c)
	}
	if s.PublisherLimits.Proofs != 0 || s.PublisherLimits.Domain != 7 || len(s.DomainKeys.Networks) != 2 ||
		s.DomainKeys.CAFile != "/etc/ca.pem" ||
		s.IDTokens.CAFile != "/etc/ca2.pem" || len(s.Warnings) != 0 {
		t.Errorf("the settings are %+v %+v %+v, warnings %q", s.PublisherLimits, s.DomainKeys, s.IDTokens, s.Warnings)
	}
}

// TestWrongSettingsOfPublishers requires that each error begins with the name of the variable, and
// that only the registry reads the variables.
func TestWrongSettingsOfPublishers(t *testing.T) {
	for _, variable := range []string{
		"PUBLISHER_PROOFS=on", "PUBLISHER_PROOFS=Policies", "PUBLISHER_PROOF_LIMIT=-1", "PUBLISHER_PROOF_LIMIT=many",
		"PUBLISHER_DOMAIN_LIMIT=-1",
		"PUBLISHER_DOMAIN_LIMIT=1.5", "PUBLISHER_RECHECK=0s", "PUBLISHER_RECHECK=999ms", "PUBLISHER_RECHECK=daily",
		"PUBLISHER_UNPROVEN_AFTER=-1s",
		"PUBLISHER_UNPROVEN_AFTER=7d", "RESERVED_NAMESPACES=com.*.example", "RESERVED_NAMESPACES=com.example/*,,",
		"PUBLISHER_DNS_RESOLVER=192.0.2.1",
		"PUBLISHER_DNS_RESOLVER=192.0.2.1:0", "PUBLISHER_PROOF_NETWORKS=10.0.0.0",
		"PUBLISHER_PROOF_NETWORKS=10.0.0.0/33",
		"OIDC_ISSUERS=ci.example.com", "OIDC_ISSUERS=http://ci.example.com", "OIDC_ISSUERS=https://ci.example.com?a=b",
		"OIDC_ISSUERS=https://ci.example.com,https://ci.example.com", "GITHUB_OIDC_ISSUER=http://git.example.com",
		"GITHUB_OIDC_ISSUER=x",
		"PUBLIC_URL=tools.example.com", "PUBLIC_URL=ftp://tools.example.com",
	} {
		name, _, _ := strings.Cut(variable, "=")
		if _, err := settings.Read([]string{variable}); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v, want an error that begins with the name", variable, err)
		}
		if _, err := settings.ReadParts([]string{variable}, []string{"auth", "methods", "ratelimit"}); err != nil {
			t.Errorf("%s without the registry: %v", variable, err)
		}
	}
}

// TestWarningsOfIssuers requires a warning of issuers without an audience, and of GitHub's issuer
// as one of the others.
func TestWarningsOfIssuers(t *testing.T) {
	for environ, beginning := range map[string]string{
		"OIDC_ISSUERS=https://ci.example.com":                                                                                "OIDC_ISSUERS is set and PUBLIC_URL is not",
		"OIDC_ISSUERS=https://token.actions.githubusercontent.com PUBLIC_URL=https://a.example":                              "OIDC_ISSUERS contains https://token.actions",
		"OIDC_ISSUERS=https://g.example,https://h.example GITHUB_OIDC_ISSUER=https://h.example PUBLIC_URL=https://a.example": "OIDC_ISSUERS contains https://h.example",
		"OIDC_ISSUERS=https://ci.example.com PUBLIC_URL=https://a.example":                                                   "",
		"PUBLIC_URL=https://a.example":                                                                                       "",
	} {
		s, err := settings.Read(strings.Fields(environ))
		if err != nil {
			t.Errorf("%s: %v", environ, err)
			continue
		}
		if beginning == "" && len(s.Warnings) != 0 ||
			beginning != "" && (len(s.Warnings) != 1 || !strings.HasPrefix(s.Warnings[0], beginning)) {
			t.Errorf("%s: warnings %q, want %q", environ, s.Warnings, beginning)
		}
	}
}
