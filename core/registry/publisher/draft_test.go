package publisher

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/must"
)

var (
	draftTime  = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	draftRules = Rules{
		Issuers: []string{"https://ci.example", "https://other.example"}, GitHubIssuer: "https://github.example",
	}
)

// goodDraft returns a draft without defect.
func goodDraft(m Method) Draft {
	d := Draft{Method: string(m), Pattern: "com.example/*"}
	switch m {
	case DNS, HTTP:
		d.Domain = "example.com"
	case OIDC:
		d.Issuer, d.Subject = "https://ci.example", "project:acme/*"
	case GitHubOIDC:
		d.Claims = map[string]string{"repository": "acme/tools"}
	}
	return d
}

func TestNewPolicyReturnsTheDraft(t *testing.T) {
	t.Parallel()
	d := goodDraft(DNS)
	d.Domain, d.KeyFingerprint, d.Pattern, d.Actions, d.ExpiresAt = "Example.COM", "ed25519:11qYAYKx",
		"com.example.a/*", []string{"status", "publish"}, draftTime.Add(1)
	p := mustPolicy(t, d)
	if p.Method != DNS || p.Domain.String() != "example.com" || p.Fingerprint.String() != d.KeyFingerprint ||
		p.Pattern.String() != d.Pattern ||
		!slices.Equal(p.Actions, []Action{Publish, Status}) || !p.ExpiresAt.Equal(d.ExpiresAt) ||
		!p.CreatedAt.Equal(draftTime) {
		t.Errorf("the policy by domain is %+v", p)
	}
	d = goodDraft(OIDC)
	d.Claims = map[string]string{"ref": "refs/heads/main"}
	p = mustPolicy(t, d)
	d.Claims["ref"] = "changed"
	if p.Method != OIDC || p.Issuer != d.Issuer || p.Subject.String() != d.Subject ||
		!maps.Equal(p.Claims, map[string]string{"ref": "refs/heads/main"}) {
		t.Errorf("the policy by ID token is %+v", p)
	}
}

func TestNewPolicyDefaults(t *testing.T) {
	t.Parallel()
	for _, m := range []Method{DNS, HTTP, OIDC, GitHubOIDC} {
		p := mustPolicy(t, goodDraft(m))
		if !slices.Equal(p.Actions, []Action{Publish}) || !p.ExpiresAt.IsZero() || !p.CheckedAt.Equal(draftTime) ||
			p.State(draftTime.AddDate(100, 0, 0), 0) != Active || p.ID != "" || p.CreatedBy != "" {
			t.Errorf("the defaults of a policy by %s are %+v", m, p)
		}
		if want := map[Method]string{
			OIDC: "https://ci.example", GitHubOIDC: "https://github.example",
		}[m]; p.Issuer != want {
			t.Errorf("the issuer of a policy by %s is %q, want %q", m, p.Issuer, want)
		}
	}
}

// TestNewPolicyRefuses has a draft with one defect in each case, and the beginning of the message.
func TestNewPolicyRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 600)
	text := func(member func(*Draft) *string) func(string) func(*Draft) {
		return func(value string) func(*Draft) { return func(d *Draft) { *member(d) = value } }
	}
	pattern := text(func(d *Draft) *string { return &d.Pattern })
	domain := text(func(d *Draft) *string { return &d.Domain })
	issuer := text(func(d *Draft) *string { return &d.Issuer })
	claim := func(name, value string) func(*Draft) {
		return func(d *Draft) { d.Claims = map[string]string{name: value} }
	}
	actions := func(list ...string) func(*Draft) { return func(d *Draft) { d.Actions = list } }
	for defect, test := range map[string]struct {
		method  Method
		damage  func(*Draft)
		message string
	}{
		"no method":      {DNS, func(d *Draft) { d.Method = "" }, "method must be"},
		"unknown method": {DNS, func(d *Draft) { d.Method = "email" }, "method must be"},
		"no pattern":     {DNS, pattern(""), "pattern is missing"},
		"bad pattern":    {DNS, pattern("com.*/x"), "pattern: resource pattern"},
		"reserved pattern": {
			OIDC, pattern("com.reserved/x"),
			"pattern com.reserved/x covers the reserved namespace com.reserved/*",
		},
		"above a reserved pattern": {OIDC, pattern("com.*"), "pattern com.* covers the reserved"},
		"unknown action":           {DNS, actions("publish", "edit"), "actions: action must be"},
		"empty action":             {DNS, actions(""), "actions: action must be"},
		"action twice":             {DNS, actions("publish", "publish"), "actions has publish twice"},
		"expired": {
			DNS, func(d *Draft) { d.ExpiresAt = draftTime }, "expiresAt must be in the future",
		},

		"everything":      {DNS, pattern("*"), "pattern * covers the reserved"},
		"no domain":       {HTTP, domain(""), "domain must not be empty"},
		"bad domain":      {HTTP, domain("localhost"), "domain must have a dot"},
		"long domain":     {HTTP, domain(longDomain(199)), "domain must be shorter"},
		"bad fingerprint": {DNS, func(d *Draft) { d.KeyFingerprint = "ed25519:1" }, "keyFingerprint must be"},
		"issuer for dns": {
			DNS, issuer("https://ci.example"), "issuer has no meaning for method dns",
		},
		"subject for http": {HTTP, func(d *Draft) { d.Subject = "a" }, "subject has no meaning for method http"},
		"claims for dns":   {DNS, claim("a", "b"), "claims has no meaning for method dns"},
		"another namespace": {
			DNS, pattern("com.other/*"),
			"pattern com.other/* is not within what a proof of example.com by dns proves: com.example/* and com.example.*",
		},
		"a longer label":      {DNS, pattern("com.example*"), "pattern com.example* is not within"},
		"a label that begins": {DNS, pattern("com.examples/*"), "pattern com.examples/* is not within"},
		"the domain above":    {DNS, pattern("com/*"), "pattern com/* is not within"},
		"upper case":          {DNS, pattern("Com.example/*"), "pattern Com.example/* is not within"},
		"a subdomain by http": {
			HTTP, pattern("com.example.a/*"),
			"pattern com.example.a/* is not within what a proof of example.com by http proves: com.example/*",
		},

		"domain for oidc": {OIDC, domain("example.com"), "domain has no meaning for method oidc"},
		"fingerprint for GitHub": {
			GitHubOIDC, func(d *Draft) { d.KeyFingerprint = "ed25519:12345678" },
			"keyFingerprint has no meaning for method github-oidc",
		},
		"no issuer": {OIDC, issuer(""), "issuer is missing"},
		"unknown issuer": {
			OIDC, issuer("https://evil.example"),
			`issuer "https://evil.example" is not configured for oidc`,
		},
		"issuer with a slash": {
			OIDC, func(d *Draft) { d.Issuer += "/" }, "issuer \"https://ci.example/\" is not configured",
		},
		"GitHub's issuer": {
			OIDC, issuer("https://github.example"),
			"issuer \"https://github.example\" is not configured for oidc",
		},
		"GitHub, other issuer": {
			GitHubOIDC, issuer("https://ci.example"),
			"issuer \"https://ci.example\" is not configured for github-oidc",
		},
		"bad subject":           {OIDC, func(d *Draft) { d.Subject = "*" }, "subject must not begin"},
		"no subject and claims": {OIDC, func(d *Draft) { d.Subject = "" }, "subject and claims are both missing"},
		"GitHub, neither":       {GitHubOIDC, func(d *Draft) { d.Claims = nil }, "subject and claims are both missing"},
		"17 claims": {
			OIDC, func(d *Draft) { d.Claims = numberedClaims(17) }, "claims must have at most 16 members, and has 17",
		},
		"claim without name":      {OIDC, claim("", "x"), "claims: a name must have"},
		"long name of a claim":    {OIDC, claim(long[:129], "x"), "claims: a name must have 1 to 128"},
		"control in a claim name": {OIDC, claim("a\n", "x"), "claims: a name must have"},
		"claim without value":     {OIDC, claim("ref", ""), "claims.ref must have 1 to 512"},
		"long claim":              {OIDC, claim("ref", long[:513]), "claims.ref must have 1 to 512"},
		"control in a claim":      {OIDC, claim("ref", "a\x00"), "claims.ref must have"},
		"claim that is not UTF-8": {OIDC, claim("ref", "\xff"), "claims.ref must have"},
		"claim with a star":       {OIDC, claim("ref", "refs/*"), `claims.ref has a "*"`},
	} {
		d := goodDraft(test.method)
		mustPolicy(t, d)
		test.damage(&d)
		rules := draftRules
		rules.Reserved = []registry.Pattern{parse(t, registry.ParsePattern, "com.reserved/*")}
		p, err := NewPolicy(d, rules, draftTime)
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), test.message) || p.Method != "" {
			t.Errorf("%s: NewPolicy = %+v, %v, want a fault that begins with %q", defect, p, err, test.message)
		}
	}
}

func TestNewPolicyAcceptsTheBounds(t *testing.T) {
	t.Parallel()
	d := goodDraft(OIDC)
	d.Claims = numberedClaims(15)
	d.Claims[strings.Repeat("n", 128)] = strings.Repeat("v", 512)
	mustPolicy(t, d)
}

func numberedClaims(count int) map[string]string {
	claims := map[string]string{}
	for n := range count {
		claims[fmt.Sprintf("claim%d", n)] = "x"
	}
	return claims
}

func TestNewPolicyWithoutGitHubIssuer(t *testing.T) {
	t.Parallel()
	if _, err := NewPolicy(goodDraft(GitHubOIDC), Rules{}, draftTime); !fault.Is(err, fault.Invalid) ||
		!strings.HasPrefix(err.Error(), "issuer is missing") {
		t.Errorf("NewPolicy on a service without an issuer = %v, want a fault", err)
	}
}

// TestGitHubPolicyNamesRepositoryOrOwner has for each subject and claims the claims to which the
// first use binds the policy; "refused" where the policy selects repositories of any owner.
func TestGitHubPolicyNamesRepositoryOrOwner(t *testing.T) {
	t.Parallel()
	const (
		refused    = "refused"
		unbound    = ""
		owner      = "repository_owner_id"
		repository = "repository_id repository_owner_id"
	)
	for _, test := range []struct {
		subject string
		claims  map[string]string
		want    string
	}{
		{"", map[string]string{"repository": "acme/tools"}, repository},
		{"", map[string]string{"repository": "acme/tools", "repository_owner": "acme"}, repository},
		{"", map[string]string{"repository": "acme/tools", "repository_id": "7"}, repository},
		{"", map[string]string{"repository_owner": "acme"}, owner},
		{"", map[string]string{"repository_owner": "acme", "repository_id": "7"}, owner},
		{"", map[string]string{"repository_id": "7"}, unbound},
		{"", map[string]string{"repository_owner_id": "65"}, unbound},
		{"", map[string]string{"ref": "refs/heads/main"}, refused},
		{"", map[string]string{"environment": "prod"}, refused},
		{
			"", map[string]string{
				"job_workflow_ref": "acme/flows/.github/workflows/publish.yml@refs/heads/main",
			}, refused,
		},
		{"repo:acme/tools:ref:refs/heads/main", nil, repository},
		{"repo:acme/tools:*", nil, repository},
		{"repo:acme/tools:environment:*", nil, repository},
		{"repo:acme/tools", nil, repository},
		{"repo:acme/tools*", nil, owner},
		{"repo:acme/tools-*:ref:refs/heads/main", nil, owner},
		{"repo:acme/*", nil, owner},
		{"repo:acme/*:environment:prod", nil, owner},
		{"repo:acme/*", map[string]string{"repository": "acme/tools"}, repository},
		{"repo:acme/tools:*", map[string]string{"repository_owner": "acme"}, repository},
		{"repo:acme/tools:*", map[string]string{"repository_id": "7"}, repository},
		{"repo:acme", nil, refused},
		{"repo:acme*", nil, refused},
		{"repo:acme*/tools:ref:refs/heads/main", nil, refused},
		{"repo:*", nil, refused},
		{"repo:*/tools:ref:refs/heads/main", nil, refused},
		{"repo:/tools:ref:refs/heads/main", nil, refused},
		{"repo", nil, refused},
		{"repo*", nil, refused},
		{"r*:acme/tools:x", nil, refused},
		{"acme/tools:repo:x", nil, refused},
		{"repository:acme/tools:ref:refs/heads/main", nil, repository},
		{"repository:acme/*", nil, owner},
		{"repository_owner:acme:environment:prod", nil, owner},
		{"repository_owner:acme:*", nil, owner},
		{"repository_owner:acme", nil, owner},
		{"repository_owner:acme*", nil, refused},
		{"repository_owner:", nil, refused},
		{"repository_owner_id:65:*", nil, unbound},
		{"repository_id:7", nil, unbound},
		{"repository_id:7*", nil, refused},
		{"repository_id::x", nil, refused},
		{"environment:prod", nil, refused}, // any repository can choose such a subject
		{"environment:prod:*", nil, refused},
		{"environment:prod:repository_owner:acme", nil, refused},
		{"job_workflow_ref:acme/flows/.github/workflows/publish.yml@refs/heads/main", nil, refused},
		{"actor:octocat:*", nil, refused},
		{"environment:prod", map[string]string{"repository_id": "7"}, unbound},
		{"environment:prod", map[string]string{"repository_owner": "acme"}, owner},
	} {
		d := goodDraft(GitHubOIDC)
		d.Subject, d.Claims = test.subject, test.claims
		p, err := NewPolicy(d, draftRules, draftTime)
		got := strings.Join(slices.Sorted(slices.Values(p.boundClaims())), " ")
		if fault.Is(err, fault.Invalid) && strings.HasPrefix(err.Error(), "claims must have repository") {
			got = refused
		} else if err != nil {
			t.Error(err)
		}
		wantEqual(t, got, test.want, "a policy for subject %q and claims %v", test.subject, test.claims)
	}
}

// TestPolicyByDomainIsWithinItsNamespace: a name that a policy by domain selects is in the
// namespace of the domain, or below it if the method is dns.
func TestPolicyByDomainIsWithinItsNamespace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		domain, err := ParseDomain(rapid.StringMatching(`[ab]{1,2}(\.[ab]{1,2}){1,2}`).Draw(t, "domain"))
		must.Succeed(t, err)
		namespace := domain.Namespace()
		d := Draft{Method: rapid.SampledFrom([]string{"dns", "http"}).Draw(t, "method"), Domain: domain.String()}
		start := rapid.IntRange(0, len(namespace)).Draw(t, "length")
		d.Pattern = namespace[:start] + rapid.StringMatching(`(\.[ab]{0,2})?(\*|/[ab]?\*|/[ab]+)`).Draw(t, "end")
		text := strings.TrimSuffix(d.Pattern, "*") + rapid.StringMatching(`[ab.]{0,4}(/[ab]{1,2})?`).Draw(t, "rest")
		p, policyErr := NewPolicy(d, Rules{}, draftTime)
		name, err := registry.ParseName(text)
		if err != nil || policyErr != nil || !p.Pattern.Matches(name) {
			return
		}
		within := strings.HasPrefix(text, namespace+"/") || d.Method == "dns" && strings.HasPrefix(text, namespace+".")
		if !within {
			t.Fatalf("a policy for %s by %s with pattern %s selects %s", domain, d.Method, d.Pattern, name)
		}
	})
}

func mustPolicy(t testing.TB, d Draft) Policy {
	t.Helper()
	p, err := NewPolicy(d, draftRules, draftTime)
	if err != nil {
		t.Fatalf("NewPolicy(%+v) = %v", d, err)
	}
	return p
}
