package registrystoretest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const (
	gitlab = "https://gitlab.example"
	// fingerprint is the fingerprint of exampleKey.
	fingerprint = "ed25519:11qYAYKx"
	exampleKey  = "ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
)

// start is the time at which the policies are created.
var start = time.Date(2026, time.March, 4, 5, 6, 7, 0, time.UTC)

func policyID(n int) registry.PolicyID {
	return registry.PolicyID(fmt.Sprintf("00000000-0000-4000-8000-%012x", n))
}

// newPolicy returns a policy with the fields that every policy has.
func newPolicy(t *testing.T, n int, m publisher.Method, pattern string) publisher.Policy {
	t.Helper()
	return publisher.Policy{
		ID: policyID(n), Method: m, Pattern: must(t, registry.ParsePattern, pattern),
		Actions: []publisher.Action{publisher.Publish}, CreatedAt: start,
	}
}

func newDNSPolicy(t *testing.T, n int, domain string) publisher.Policy {
	t.Helper()
	p := newPolicy(t, n, publisher.DNS, "com.example/*")
	p.Domain = must(t, publisher.ParseDomain, domain)
	return p
}

// newHTTPPolicy returns the policy with the number 2.
func newHTTPPolicy(t *testing.T, domain string) publisher.Policy {
	t.Helper()
	p := newDNSPolicy(t, 2, domain)
	p.Method = publisher.HTTP
	return p
}

func newOIDCPolicy(t *testing.T, n int, issuer string) publisher.Policy {
	t.Helper()
	p := newPolicy(t, n, publisher.OIDC, "com.example/*")
	p.Issuer, p.Subject = issuer, must(t, publisher.ParseSubjectPattern, "project_path:acme/tools:*")
	return p
}

// newBoundPolicy returns a policy for GitHub that was used.
func newBoundPolicy(t *testing.T, n int) publisher.Policy {
	t.Helper()
	p := newPolicy(t, n, publisher.GitHubOIDC, "io.github.acme/*")
	p.Issuer, p.Claims = "https://token.actions.example", map[string]string{
		"repository": "acme/tools", "ref": "refs/heads/main",
	}
	p.Bound = map[string]string{"repository_id": "12", "repository_owner_id": "7"}
	return p
}

// examplePolicies returns policies of all methods, in the order of their IDs. All fields are set in
// some of them and zero in others.
func examplePolicies(t *testing.T) []publisher.Policy {
	t.Helper()
	dns := newDNSPolicy(t, 1, "example.com")
	dns.Pattern = must(t, registry.ParsePattern, "com.example.*")
	dns.Actions = []publisher.Action{publisher.Publish, publisher.Status}
	dns.Fingerprint = must(t, publisher.ParseFingerprint, fingerprint)
	dns.CreatedBy, dns.ExpiresAt = "somebody", start.Add(time.Hour)
	dns.LastUsedAt, dns.UsedKey = start.Add(time.Minute), exampleKey
	dns.CheckedAt, dns.GoneSince = start.Add(2*time.Minute), start.Add(3*time.Minute+time.Microsecond)

	http := newHTTPPolicy(t, "xn--bcher-kva.example")
	http.Actions = []publisher.Action{publisher.Status}

	oidc := newOIDCPolicy(t, 3, gitlab+"/it's?a=\"b\"\\c")
	oidc.Claims = map[string]string{"ref": "it's ? \"quoted\" \\ é <&> 日本", "a?b'c\"d": "?0", "sha": "0"}
	oidc.CreatedBy, oidc.ExpiresAt = "0f3c'é?", start.AddDate(100, 0, 0)
	oidc.LastUsedAt = start.Add(time.Second)

	subject := newOIDCPolicy(t, 5, gitlab)
	subject.Subject = must(t, publisher.ParseSubjectPattern, "repo:acme'?\\é/*:ref:refs/heads/*")
	return []publisher.Policy{dns, http, oidc, newBoundPolicy(t, 4), subject}
}

// must returns what parse returns for a text.
func must[V any](t *testing.T, parse func(string) (V, error), text string) V {
	t.Helper()
	v, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (s PolicyStores) addPolicies(t *testing.T, policies ...publisher.Policy) {
	t.Helper()
	for _, p := range policies {
		if err := s.Policies.Add(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

func (s PolicyStores) update(t *testing.T, id registry.PolicyID, change func(p *publisher.Policy)) {
	t.Helper()
	err := s.Policies.Update(t.Context(), id, func(p *publisher.Policy) error { change(p); return nil })
	if err != nil {
		t.Error(err)
	}
}

func (s PolicyStores) find(t *testing.T, q registrystore.PolicyQuery) []publisher.Policy {
	t.Helper()
	found, err := s.Policies.Find(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// wantPolicies checks what Find returns.
func (s PolicyStores) wantPolicies(t *testing.T, q registrystore.PolicyQuery, want ...publisher.Policy) {
	t.Helper()
	comparePolicies(t, q, s.find(t, q), want)
}

func comparePolicies(t *testing.T, q registrystore.PolicyQuery, got, want []publisher.Policy) {
	t.Helper()
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("Find(%+v) =\n%+v, want\n%+v", q, got, want)
	}
}
