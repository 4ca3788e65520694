package registrystoretest

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

func findsPoliciesByID(t *testing.T, s PolicyStores) {
	t.Helper()
	a, b, c := newDNSPolicy(t, 1, "example.com"), newHTTPPolicy(t, "example.com"), newOIDCPolicy(t, 3, gitlab)
	s.addPolicies(t, c, a, b)
	s.wantPolicies(t, registrystore.PolicyQuery{IDs: nil}, a, b, c)
	s.wantPolicies(t, registrystore.PolicyQuery{IDs: []registry.PolicyID{}})
	s.wantPolicies(t, registrystore.PolicyQuery{IDs: []registry.PolicyID{policyID(9)}})
	s.wantPolicies(t, registrystore.PolicyQuery{IDs: []registry.PolicyID{c.ID, policyID(9), a.ID, c.ID}}, a, c)
	s.wantPolicies(t, registrystore.PolicyQuery{IDs: []registry.PolicyID{c.ID, a.ID}, Method: publisher.DNS}, a)
}

func findsPoliciesByProof(t *testing.T, s PolicyStores) {
	t.Helper()
	const buildkite = "https://agent.buildkite.example"
	dns, http, below := newDNSPolicy(t, 1, "example.com"), newHTTPPolicy(t, "example.com"),
		newDNSPolicy(t, 3, "a.example.com")
	second := newDNSPolicy(t, 4, "example.com")
	first, other := newOIDCPolicy(t, 5, gitlab), newOIDCPolicy(t, 6, buildkite)
	github := newOIDCPolicy(t, 7, gitlab)
	github.Method = publisher.GitHubOIDC
	s.addPolicies(t, github, other, first, second, below, http, dns)
	for _, c := range []struct {
		q    registrystore.PolicyQuery
		want []publisher.Policy
	}{
		{registrystore.PolicyQuery{Method: publisher.DNS}, []publisher.Policy{dns, below, second}},
		{registrystore.PolicyQuery{Method: publisher.DNS, Domain: dns.Domain}, []publisher.Policy{dns, second}},
		{registrystore.PolicyQuery{Method: publisher.HTTP, Domain: dns.Domain}, []publisher.Policy{http}},
		{registrystore.PolicyQuery{Method: publisher.HTTP, Domain: below.Domain}, nil},
		{registrystore.PolicyQuery{Domain: dns.Domain}, []publisher.Policy{dns, http, second}},
		{registrystore.PolicyQuery{Method: publisher.OIDC, Issuer: gitlab}, []publisher.Policy{first}},
		{registrystore.PolicyQuery{Method: publisher.GitHubOIDC, Issuer: gitlab}, []publisher.Policy{github}},
		{registrystore.PolicyQuery{Method: publisher.OIDC, Issuer: gitlab + "/"}, nil},
		{registrystore.PolicyQuery{Issuer: gitlab}, []publisher.Policy{first, github}},
	} {
		s.wantPolicies(t, c.q, c.want...)
	}
}

func findsDuePolicies(t *testing.T, s PolicyStores) {
	t.Helper()
	never, early, late := newDNSPolicy(t, 1, "example.com"), newHTTPPolicy(t, "example.com"),
		newDNSPolicy(t, 3, "example.org")
	early.CheckedAt, late.CheckedAt = start, start.Add(time.Hour)
	oidc, github := newOIDCPolicy(t, 4, gitlab), newBoundPolicy(t, 5)
	s.addPolicies(t, github, oidc, late, early, never)
	before := func(d time.Duration) registrystore.PolicyQuery {
		return registrystore.PolicyQuery{CheckedBefore: start.Add(d)}
	}
	s.wantPolicies(t, before(0), never)
	s.wantPolicies(t, before(time.Microsecond), never, early)
	s.wantPolicies(t, before(time.Hour), never, early)
	s.wantPolicies(t, before(2*time.Hour), never, early, late)

	narrow := before(2 * time.Hour)
	narrow.Method = publisher.DNS
	s.wantPolicies(t, narrow, never, late)
	narrow = before(2 * time.Hour)
	narrow.IDs = []registry.PolicyID{early.ID, oidc.ID}
	s.wantPolicies(t, narrow, early)
	narrow = before(2 * time.Hour)
	narrow.After, narrow.Limit = never.ID, 1
	s.wantPolicies(t, narrow, early)
	narrow.After = early.ID
	s.wantPolicies(t, narrow, late)
}

func readsPolicyPages(t *testing.T, s PolicyStores) {
	t.Helper()
	var all, dns []publisher.Policy
	for n := range 7 {
		p := newDNSPolicy(t, 0x9e+n, "example.com") // IDs that end in a letter and in a digit
		if n%3 == 1 {
			p = newOIDCPolicy(t, 0x9e+n, gitlab)
		} else {
			dns = append(dns, p)
		}
		all = append(all, p)
	}
	for n := range all {
		s.addPolicies(t, all[len(all)-1-n])
	}
	for size := 1; size <= len(all)+1; size++ {
		s.wantPages(t, registrystore.PolicyQuery{Limit: size}, all)
		s.wantPages(t, registrystore.PolicyQuery{Limit: size, Method: publisher.DNS}, dns)
	}
	s.wantPolicies(t, registrystore.PolicyQuery{After: all[2].ID}, all[3:]...)
	s.wantPolicies(t, registrystore.PolicyQuery{After: all[6].ID})
}

// wantPages checks the policies of the pages that follow each other, until one is not full.
func (s PolicyStores) wantPages(t *testing.T, q registrystore.PolicyQuery, want []publisher.Policy) {
	t.Helper()
	var got []publisher.Policy
	for {
		page := s.find(t, q)
		if len(page) > q.Limit {
			t.Fatalf("a page of %d has %d policies", q.Limit, len(page))
		}
		if got = append(got, page...); len(page) < q.Limit {
			break
		}
		q.After = page[len(page)-1].ID
	}
	comparePolicies(t, q, got, want)
}
