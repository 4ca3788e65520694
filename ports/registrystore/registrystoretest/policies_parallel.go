package registrystoretest

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// policyWriters is how many callers change a policy at the same time.
const policyWriters = 20

// inParallel calls write in as many goroutines as there are policyWriters.
func inParallel(write func(n int)) {
	var all sync.WaitGroup
	for n := range policyWriters {
		all.Go(func() { write(n) })
	}
	all.Wait()
}

func updatesInParallel(t *testing.T, s PolicyStores) {
	t.Helper()
	p, other := newDNSPolicy(t, 1, "example.com"), newDNSPolicy(t, 2, "example.com")
	p.CheckedAt = start
	s.addPolicies(t, p, other)
	inParallel(func(int) {
		s.update(t, p.ID, func(p *publisher.Policy) { p.CheckedAt = p.CheckedAt.Add(time.Second) })
	})
	p.CheckedAt = start.Add(policyWriters * time.Second)
	s.wantPolicies(t, registrystore.PolicyQuery{}, p, other)
}

// bindsOnce uses a policy for the first time with the tokens of many repositories of one name. The
// policy admits only one of them.
func bindsOnce(t *testing.T, s PolicyStores) {
	t.Helper()
	p := newBoundPolicy(t, 1)
	p.Bound = nil
	s.addPolicies(t, p)
	var winner atomic.Pointer[publisher.Proof]
	inParallel(func(n int) {
		proof := &publisher.Proof{Method: p.Method, Identity: publisher.Identity{
			Issuer: p.Issuer, Subject: p.Subject.String(),
			Claims: map[string]string{
				"repository": "acme/tools", "ref": "refs/heads/main", "repository_id": strconv.Itoa(n),
				"repository_owner_id": "7",
			},
		}}
		err := s.Policies.Update(t.Context(), p.ID, func(p *publisher.Policy) error {
			if m := p.Compare(proof); m != "" {
				return fault.New(fault.Unauthenticated, string(m))
			}
			*p, _ = p.Use(proof, start)
			return nil
		})
		switch {
		case err == nil && !winner.CompareAndSwap(nil, proof):
			t.Error("two tokens with different IDs were the first")
		case err != nil && !fault.Is(err, fault.Unauthenticated):
			t.Error(err)
		}
	})
	if winner.Load() == nil {
		t.Fatal("no token was the first")
	}
	p, _ = p.Use(winner.Load(), start)
	s.wantPolicies(t, registrystore.PolicyQuery{}, p)
}

func addsPolicyInParallel(t *testing.T, s PolicyStores) {
	t.Helper()
	var added atomic.Int32
	inParallel(func(int) {
		switch err := s.Policies.Add(t.Context(), newDNSPolicy(t, 1, "example.com")); {
		case err == nil:
			added.Add(1)
		case !fault.Is(err, fault.Conflict):
			t.Errorf("Add of an ID that exists: %v, want fault.Conflict", err)
		}
	})
	if n := added.Load(); n != 1 {
		t.Errorf("%d callers added a policy with one ID, want 1", n)
	}
	s.wantPolicies(t, registrystore.PolicyQuery{}, newDNSPolicy(t, 1, "example.com"))
}
