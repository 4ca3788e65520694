package publisher

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestParseMethod(t *testing.T) {
	t.Parallel()
	for m, byDomain := range map[Method]bool{DNS: true, HTTP: true, OIDC: false, GitHubOIDC: false} {
		if got, err := ParseMethod(string(m)); got != m || err != nil || got.ByDomain() != byDomain {
			t.Errorf("ParseMethod(%q) = %q, %v, by domain: %t", m, got, err, got.ByDomain())
		}
	}
	checkRefused(t, "method must be dns, http, oidc or github-oidc", ParseMethod, "", "DNS", "github",
		"http ", "dns\x00")
}

func TestParseAction(t *testing.T) {
	t.Parallel()
	for _, a := range []Action{Publish, Status} {
		if got, err := ParseAction(string(a)); got != a || err != nil {
			t.Errorf("ParseAction(%q) = %q, %v", a, got, err)
		}
	}
	checkRefused(t, "action must be publish or status", ParseAction, "", "Publish", "edit", "status ", "*")
}

func TestParseMode(t *testing.T) {
	t.Parallel()
	for _, m := range []Mode{Off, ByPolicies, Open} {
		if got, err := ParseMode(string(m)); got != m || err != nil {
			t.Errorf("ParseMode(%q) = %q, %v", m, got, err)
		}
	}
	checkRefused(t, "must be off, policies or open", ParseMode, "", "OFF", "on", "policy", "open ")
}

// checkRefused checks that parse refuses each text with a message that shows it, clipped.
func checkRefused[T ~string](t *testing.T, message string, parse func(string) (T, error), texts ...string) {
	t.Helper()
	for _, s := range append(texts, strings.Repeat("x", 1000)) {
		if got, err := parse(s); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), message) ||
			got != "" || len(err.Error()) > 400 {
			t.Errorf("parsing %q = %q, %v, want a fault with %q", s, got, err, message)
		}
	}
}

// TestPermissionAllowsItsPatternOnly compares Allows with a comparison of the beginning of names.
func TestPermissionAllowsItsPatternOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern, err := registry.ParsePattern(rapid.StringMatching(`[ab][ab.]{0,3}(/[ab]{0,2}\*|\*|/[ab]{1,2})`).
			Draw(t, "pattern"))
		must.Succeed(t, err)
		name, err := registry.ParseName(rapid.StringMatching(`[ab][ab.]{0,3}/[ab]{1,3}`).Draw(t, "name"))
		must.Succeed(t, err)
		p := Permission{
			Pattern: pattern,
			Actions: rapid.SliceOfDistinct(rapid.SampledFrom([]Action{Publish, Status}), rapid.ID[Action]).
				Draw(t, "actions"),
		}
		prefix, wild := strings.CutSuffix(pattern.String(), "*")
		inside := name.String() == prefix || wild && strings.HasPrefix(name.String(), prefix)
		for _, a := range []Action{Publish, Status, "edit", ""} {
			if got, want := p.Allows(a, name), inside && slices.Contains(p.Actions, a); got != want {
				t.Fatalf("a permission for %v on %s allows %q on %s: %t, want %t", p.Actions, pattern, a,
					name, got, want)
			}
		}
	})
	if (Permission{Actions: []Action{Publish}}).Allows(Publish, registry.Name{}) {
		t.Error("a permission without a pattern allows something")
	}
}

func TestProofSubject(t *testing.T) {
	t.Parallel()
	domain := parse(t, ParseDomain, "example.com")
	byDomain := Proof{Method: DNS, Domain: domain, Identity: Identity{Issuer: "i", Subject: "s"}}
	byToken := Proof{Method: OIDC, Identity: Identity{Issuer: "https://ci.example", Subject: "job:7"}}
	if byDomain.Subject() != "example.com" || byToken.Subject() != "https://ci.example job:7" {
		t.Errorf("subjects are %q and %q", byDomain.Subject(), byToken.Subject())
	}
}

func TestOpenPermissions(t *testing.T) {
	t.Parallel()
	domain := parse(t, ParseDomain, "example.com")
	owner := func(m Method, name string) Proof {
		return Proof{
			Method: m, Identity: Identity{
				Issuer: "https://ci.example", Claims: map[string]string{"repository_owner": name},
			},
		}
	}
	for name, test := range map[string]struct {
		proof Proof
		want  []string
	}{
		"dns":                     {Proof{Method: DNS, Domain: domain}, []string{"com.example/*", "com.example.*"}},
		"http":                    {Proof{Method: HTTP, Domain: domain}, []string{"com.example/*"}},
		"GitHub":                  {owner(GitHubOIDC, "Acme-1"), []string{"io.github.Acme-1/*"}},
		"another issuer":          {owner(OIDC, "acme"), nil},
		"no owner":                {owner(GitHubOIDC, ""), nil},
		"an owner with a star":    {owner(GitHubOIDC, "acme*"), nil},
		"an owner with a dot":     {owner(GitHubOIDC, "acme.evil"), nil},
		"an owner with a slash":   {owner(GitHubOIDC, "acme/x"), nil},
		"an owner with _":         {owner(GitHubOIDC, "acme_x"), nil},
		"an owner that is a star": {owner(GitHubOIDC, "*"), nil},
		"a long owner":            {owner(GitHubOIDC, strings.Repeat("a", 200)), nil},
		"no claims":               {Proof{Method: GitHubOIDC}, nil},
	} {
		var got []string
		for _, p := range test.proof.OpenPermissions() {
			got = append(got, p.Pattern.String())
			if !slices.Equal(p.Actions, []Action{Publish, Status}) || p.Policy != "" {
				t.Errorf("%s: the permission is %+v", name, p)
			}
		}
		wantEqual(t, got, test.want, "%s: the patterns", name)
	}
}
