package settings

import (
	"fmt"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// firstRetry is the time from the first attempt to deliver an event to the second.
const firstRetry = 5 * time.Second

// registryBindings returns the settings of publications, reviews, policies of publishers (contract
// P-10 to P-21) and webhooks.
func (s *Settings) registryBindings() []binding {
	publish, policies, recheck := &s.Publishing, &s.Delegating, &s.Recheck
	return []binding{
		s.bind(&s.Reading.Private, "REGISTRY_READ", "public",
			"public, or people: reading the registry needs a session, or a token with the scope registry:read").
			as("text", oneOf(&s.Reading.Private, "people", "public")),
		s.bind(&s.Serving.MCP, "MCP", "off", "on: the registry, and each view, is an MCP server too, at /mcp and /registries/NAME/mcp; or off").
			as("text", oneOf(&s.Serving.MCP, "on", "off")),
		s.bind(&publish.WritesOff, "REGISTRY_WRITES", "on",
			"on, or off: publish, PUT and DELETE return 501").as("text", oneOf(&publish.WritesOff, "off", "on")),
		s.bind(&publish.Review, "REGISTRY_REVIEW", "off",
			"on: what is published is listed after a reviewer or a rule has approved it; or off").
			as("text", oneOf(&publish.Review, "on", "off")),
		s.bind(&s.Reviewing.ToolsRequired, "TOOLS_REQUIRED", "off",
			"of which parts a version needs a tool list before a reviewer may approve it: off, remotes, or all "+
				"(remotes and packages)").as("text", word(&s.Reviewing.ToolsRequired, tools.ParseRequired, "off, remotes or all")),
		s.bind(&s.Reviewing.TwoApprovals, "REVIEW_DANGEROUS", "one",
			"how many reviewers approve what is dangerous: one, or two, neither of whom submitted it").
			as("text", oneOf(&s.Reviewing.TwoApprovals, "two", "one")),
		s.bind(&publish.PendingMax, "REVIEW_PENDING_MAX", "50",
			"documents of one publisher that may wait for review at the same time"),
		s.bind(&publish.Checks, "PACKAGE_CHECKS", "enforce",
			"whether a package must claim its server: enforce, warn (publish, with a warning in the audit log) "+
				"or off").as("text", word(&publish.Checks, publishing.ParseChecks, "enforce, warn or off")),
		s.bind(&s.WriteTrust, "REGISTRY_WRITE_TRUST", "FULL_TRUST",
			"minimum trust level for every write").
			as("text", word(&s.WriteTrust, auth.ParseTrustLevel, "FULL_TRUST, LIMITED_TRUST, UNVERIFIED or HIGH_RISK")),
		s.bind(&policies.Mode, "PUBLISHER_PROOFS", "policies",
			"what a proof of a domain or of a CI job may publish: policies (what policies allow), open (also the "+
				"names that it proves), or off (no proofs)").
			as("text", word(&policies.Mode, publisher.ParseMode, "policies, open or off")),
		s.bind(&recheck.Interval, "PUBLISHER_RECHECK", "24h",
			"time between two searches for the key of a policy by domain"),
		s.bind(&recheck.UnprovenAfter, "PUBLISHER_UNPROVEN_AFTER", "168h",
			"how long the key of a policy may be gone from its domain before the policy gives nothing"),
		s.bind(&policies.Rules.Reserved, "RESERVED_NAMESPACES", "",
			"names of servers that nobody may publish: patterns as in grants, comma separated").
			as("a comma-separated list", patterns(&policies.Rules.Reserved)),
		s.bind(&s.Watching.Interval, "TOOLS_INTERVAL", "6h",
			"time between two questions to a remote for its tools, at least 1s; 0 for questions by hand only"),
		s.bind(&s.Deliveries.For, "WEBHOOK_RETRY_FOR", "24h",
			"how long an event that a webhook does not accept is sent again before it counts as dead; 1s to 720h"),
	}
}

// completeRegistry sets what use cases of the registry take from settings of others.
func (s *Settings) completeRegistry() {
	rules := &s.Delegating.Rules
	rules.Issuers, rules.GitHubIssuer = s.IDTokens.Issuers, s.IDTokens.GitHubIssuer
	s.Publishing.Reserved, s.Mirroring.Reserved = rules.Reserved, rules.Reserved
	s.Mirroring.Review = s.Publishing.Review
	s.Recheck.Mode, s.Delegating.UnprovenAfter = s.Delegating.Mode, s.Recheck.UnprovenAfter
	s.Deliveries.First, s.Watching.OnChange = firstRetry, s.Access.OnChange
}

// patterns returns a function that sets a field to the patterns of a list.
func patterns(field *[]registry.Pattern) func(string) error {
	return func(text string) error {
		var names []string
		if err := parseField(&names, text, "a comma-separated list"); err != nil {
			return err
		}
		list := make([]registry.Pattern, len(names))
		for i, name := range names {
			var err error
			if list[i], err = registry.ParsePattern(name); err != nil {
				return err
			}
		}
		*field = list
		return nil
	}
}

// warnOfIssuers warns of issuers that are configured and not used, and of an issuer whose jobs have
// two methods: only a policy of the method github-oidc is bound to IDs (contract P-12).
func (s *Settings) warnOfIssuers() {
	if len(s.IDTokens.Issuers) > 0 && s.IDTokens.PublicURL == "" {
		s.Warnings = append(s.Warnings, "OIDC_ISSUERS is set and PUBLIC_URL is not: there are no proofs by ID token")
	}
	if len(s.IDTokens.AuthorizationServers) > 0 && s.IDTokens.PublicURL == "" {
		s.Warnings = append(s.Warnings,
			"OAUTH_AUTHORIZATION_SERVERS is set and PUBLIC_URL is not: there is no metadata for OAuth clients")
	}
	if slices.Contains(s.IDTokens.Issuers, s.IDTokens.GitHubIssuer) {
		s.Warnings = append(s.Warnings,
			fmt.Sprintf("OIDC_ISSUERS contains %s, the issuer of GITHUB_OIDC_ISSUER: a policy of the method oidc "+
				"is not bound to the IDs of repository and owner; use the method github-oidc", s.IDTokens.GitHubIssuer))
	}
}
