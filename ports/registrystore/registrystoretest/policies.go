package registrystoretest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// PolicyStores are an empty store of policies, and its transactions.
type PolicyStores struct {
	Policies registrystore.Policies
	Runner   transaction.Runner
}

// RunPolicies runs the tests of the stores of policies. open is called for each test.
func RunPolicies(t *testing.T, open func(t *testing.T) PolicyStores) {
	t.Helper()
	parts := map[string]func(t *testing.T, s PolicyStores){
		"an empty store has no policies":                               hasNoPolicies,
		"a stored policy has the value of every field":                 keepsPolicyFields,
		"times are returned in UTC with microseconds":                  truncatesPolicyTimes,
		"a change of a returned policy does not change the stored one": returnsPolicyCopies,
		"a second policy with the same ID is refused":                  refusesPolicyTwice,
		"a removed policy is not found":                                removesPolicies,
		"policies are found by their IDs":                              findsPoliciesByID,
		"policies are found by method, domain and issuer":              findsPoliciesByProof,
		"policies are found that were last checked before a time":      findsDuePolicies,
		"pages list every policy once":                                 readsPolicyPages,
		"an update replaces the policy":                                updatesPolicy,
		"an update of a policy that does not exist is refused":         refusesMissingUpdate,
		"an update whose change fails stores nothing":                  abandonsUpdate,
		"parallel updates of a policy are all stored":                  updatesInParallel,
		"one of several parallel first uses binds the policy":          bindsOnce,
		"one of several parallel policies with the same ID is stored":  addsPolicyInParallel,
		"a failed transaction stores no policy":                        rollsPoliciesBack,
		"a call with a cancelled context fails":                        refusesCanceledContext,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

func hasNoPolicies(t *testing.T, s PolicyStores) {
	t.Helper()
	s.wantPolicies(t, registrystore.PolicyQuery{})
	s.wantPolicies(t, registrystore.PolicyQuery{IDs: []registry.PolicyID{policyID(1)}, Limit: 5})
	if err := s.Policies.Remove(t.Context(), policyID(1)); !fault.Is(err, fault.NotFound) {
		t.Errorf("Remove in an empty store: %v, want fault.NotFound", err)
	}
}

func keepsPolicyFields(t *testing.T, s PolicyStores) {
	t.Helper()
	all := examplePolicies(t)
	s.addPolicies(t, all...)
	s.wantPolicies(t, registrystore.PolicyQuery{}, all...)
	for _, p := range all {
		s.wantPolicies(t, registrystore.PolicyQuery{IDs: []registry.PolicyID{p.ID}}, p)
	}
}

func truncatesPolicyTimes(t *testing.T, s PolicyStores) {
	t.Helper()
	stored := start.Add(987654 * time.Microsecond)
	given := stored.Add(321).In(time.FixedZone("", 3*60*60))
	p := newDNSPolicy(t, 1, "example.com")
	p.CreatedAt, p.ExpiresAt, p.LastUsedAt, p.CheckedAt, p.GoneSince = given, given, given, given, given
	p.Claims, p.Bound = map[string]string{}, map[string]string{}
	s.addPolicies(t, p)
	p.CreatedAt, p.ExpiresAt, p.LastUsedAt, p.CheckedAt, p.GoneSince = stored, stored, stored, stored, stored
	p.Claims, p.Bound = nil, nil
	s.wantPolicies(t, registrystore.PolicyQuery{}, p)
	s.update(t, p.ID, func(p *publisher.Policy) { p.CheckedAt = given })
	s.wantPolicies(t, registrystore.PolicyQuery{}, p)
}

func returnsPolicyCopies(t *testing.T, s PolicyStores) {
	t.Helper()
	spoil := func(p *publisher.Policy) {
		p.Actions[0] = publisher.Status
		p.Claims["repository"], p.Bound["repository_id"] = "another", "another"
	}
	given, want := newBoundPolicy(t, 1), newBoundPolicy(t, 1)
	s.addPolicies(t, given)
	spoil(&given)
	s.wantPolicies(t, registrystore.PolicyQuery{}, want)
	spoil(&s.find(t, registrystore.PolicyQuery{})[0])
	s.wantPolicies(t, registrystore.PolicyQuery{}, want)
	var kept publisher.Policy
	s.update(t, want.ID, func(p *publisher.Policy) { kept = *p })
	spoil(&kept)
	s.wantPolicies(t, registrystore.PolicyQuery{}, want)
}

func refusesPolicyTwice(t *testing.T, s PolicyStores) {
	t.Helper()
	p := newDNSPolicy(t, 1, "example.com")
	s.addPolicies(t, p)
	if err := s.Policies.Add(t.Context(), newDNSPolicy(t, 1, "example.org")); !fault.Is(err, fault.Conflict) {
		t.Errorf("Add with an ID that exists: %v, want fault.Conflict", err)
	}
	s.wantPolicies(t, registrystore.PolicyQuery{}, p)
}

func removesPolicies(t *testing.T, s PolicyStores) {
	t.Helper()
	a, b := newDNSPolicy(t, 1, "example.com"), newDNSPolicy(t, 2, "example.com")
	s.addPolicies(t, a, b)
	if err := s.Policies.Remove(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	s.wantPolicies(t, registrystore.PolicyQuery{}, b)
	if err := s.Policies.Remove(t.Context(), a.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("Remove again: %v, want fault.NotFound", err)
	}
	s.addPolicies(t, a)
	s.wantPolicies(t, registrystore.PolicyQuery{}, a, b)
}

func updatesPolicy(t *testing.T, s PolicyStores) {
	t.Helper()
	all := examplePolicies(t)
	first, other := all[0], newDNSPolicy(t, 99, "example.com")
	s.addPolicies(t, first, other)
	for _, next := range all {
		next.ID = first.ID
		s.update(t, first.ID, func(p *publisher.Policy) { *p = next })
		s.wantPolicies(t, registrystore.PolicyQuery{}, next, other)
	}
}

func refusesMissingUpdate(t *testing.T, s PolicyStores) {
	t.Helper()
	err := s.Policies.Update(t.Context(), policyID(1), func(*publisher.Policy) error {
		t.Error("change was called for a policy that does not exist")
		return nil
	})
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("Update of a missing policy: %v, want fault.NotFound", err)
	}
	s.wantPolicies(t, registrystore.PolicyQuery{})
}

// errChange is the error of a change.
var errChange = errors.New("the change fails")

func abandonsUpdate(t *testing.T, s PolicyStores) {
	t.Helper()
	p := newBoundPolicy(t, 1)
	s.addPolicies(t, p)
	err := s.Policies.Update(t.Context(), p.ID, func(p *publisher.Policy) error {
		p.UsedKey, p.Bound["repository_id"] = "another", "another"
		return errChange
	})
	if err != errChange { //nolint:errorlint // the port returns the error unchanged
		t.Errorf("Update: %v, want the error of the change", err)
	}
	s.wantPolicies(t, registrystore.PolicyQuery{}, newBoundPolicy(t, 1))
}

func rollsPoliciesBack(t *testing.T, s PolicyStores) {
	t.Helper()
	kept, removed, added := newDNSPolicy(t, 1, "example.com"), newDNSPolicy(t, 2, "example.com"),
		newDNSPolicy(t, 3, "example.com")
	s.addPolicies(t, kept, removed)
	err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		err := errors.Join(s.Policies.Add(ctx, added), s.Policies.Remove(ctx, removed.ID),
			s.Policies.Update(ctx, kept.ID, func(p *publisher.Policy) error { p.UsedKey = "another"; return nil }))
		if err != nil {
			return err
		}
		found, err := s.Policies.Find(ctx, registrystore.PolicyQuery{})
		if err != nil || len(found) != 2 || found[0].UsedKey != "another" || found[1].ID != added.ID {
			t.Errorf("Find in the transaction = %+v, %v, want its changes", found, err)
		}
		return errChange
	})
	if !errors.Is(err, errChange) {
		t.Errorf("Atomically: %v", err)
	}
	s.wantPolicies(t, registrystore.PolicyQuery{}, kept, removed)
}

func refusesCanceledContext(t *testing.T, s PolicyStores) {
	t.Helper()
	p := newDNSPolicy(t, 1, "example.com")
	s.addPolicies(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, all := s.Policies.Find(ctx, registrystore.PolicyQuery{})
	_, none := s.Policies.Find(ctx, registrystore.PolicyQuery{IDs: []registry.PolicyID{}})
	for call, err := range map[string]error{
		"Add":    s.Policies.Add(ctx, newDNSPolicy(t, 2, "example.com")),
		"Remove": s.Policies.Remove(ctx, p.ID),
		"Update": s.Policies.Update(ctx, p.ID, func(p *publisher.Policy) error {
			p.UsedKey = "another"
			return nil
		}),
		"Find":         all,
		"Find nothing": none,
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a canceled context: %v", call, err)
		}
	}
	s.wantPolicies(t, registrystore.PolicyQuery{}, p)
}
