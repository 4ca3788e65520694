package delegating_test

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/identity"
)

// gitHubRequest returns a proof by an ID token.
func gitHubRequest() delegating.IdentityRequest {
	return delegating.IdentityRequest{
		Client: delegating.Client{Address: address, Key: "client"}, Method: publisher.GitHubOIDC, Token: "text",
	}
}

func (fx *fixture) requireEvent(t *testing.T, want authority.ProofAttempt) {
	t.Helper()
	want.Address = address
	if len(fx.publishers.events) != 1 || !reflect.DeepEqual(fx.publishers.events[0], want) {
		t.Errorf("the events are %+v, want %+v", fx.publishers.events, want)
	}
	fx.publishers.events = nil
}

// TestEachAttemptIsRecorded checks the event of each outcome (contract P-17).
func TestEachAttemptIsRecorded(t *testing.T) {
	t.Parallel()
	key := newSigner(1)
	fx := newFixture(t, publisher.ByPolicies)
	byDomain := authority.ProofAttempt{Method: publisher.DNS, Domain: domainName}
	refused := func(reason string) authority.ProofAttempt {
		e := byDomain
		e.Reason = reason
		return e
	}
	reasonOf := func(err error) string {
		f, ok := fault.As(err)
		if !ok {
			t.Fatalf("got %v, want a fault", err)
		}
		return f.Message
	}
	_, err := fx.prove(t, key)
	fx.requireEvent(t, refused(reasonOf(err))) // there is no record
	fx.keys.err = fault.New(fault.Unavailable, "no answer")
	_, _ = fx.prove(t, key)
	fx.requireEvent(t, refused("no answer"))
	fx.keys.texts, fx.keys.err = []string{key.record()}, nil
	_, err = fx.prove(t, key)
	notAllowed := refused(reasonOf(err))
	notAllowed.Key, notAllowed.Holds = key.fingerprint(), true
	fx.requireEvent(t, notAllowed)

	fx.addPolicy(t, "p1", maker, domainDraft())
	fx.addPolicy(t, "p2", maker, domainDraft())
	fx.clock.Advance(time.Second)
	r := fx.newRequest(key)
	if _, err := fx.ProveDomain(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	fx.requireEvent(t, authority.ProofAttempt{
		Method: publisher.DNS, Domain: domainName, Key: key.fingerprint(), Policies: []registry.PolicyID{"p1", "p2"},
	})
	_, err = fx.ProveDomain(t.Context(), r)
	replay := refused(reasonOf(err))
	replay.Key = key.fingerprint()
	fx.requireEvent(t, replay)
}

func TestEachTokenIsRecorded(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, publisher.ByPolicies)
	job := newJob("1", "10", "20")
	fx.identities.token, fx.identities.err = identity.Token{}, fault.New(fault.Unauthenticated, "malformed")
	_, _ = fx.ProveIdentity(t.Context(), gitHubRequest())
	fx.requireEvent(t, authority.ProofAttempt{Method: publisher.GitHubOIDC, Reason: "malformed"})
	fx.identities.token, fx.identities.err = job, fault.New(fault.Unauthenticated, "expired")
	_, _ = fx.ProveIdentity(t.Context(), gitHubRequest())
	fx.requireEvent(t, authority.ProofAttempt{
		Method: publisher.GitHubOIDC, Issuer: gitHubIssuer, Subject: job.Subject, Reason: "expired",
	})
	fx.addPolicy(t, "p1", maker, gitHubDraft())
	if _, err := fx.proveJob(t, publisher.GitHubOIDC, job); err != nil {
		t.Fatal(err)
	}
	fx.requireEvent(t, authority.ProofAttempt{
		Method: publisher.GitHubOIDC, Issuer: gitHubIssuer, Subject: job.Subject, Policies: []registry.PolicyID{"p1"},
	})
}

// TestUseAndEventAreOneTransaction checks that a use that cannot be recorded is not stored, and
// gives no token.
func TestUseAndEventAreOneTransaction(t *testing.T) {
	t.Parallel()
	key := newSigner(1)
	for _, failure := range []error{fault.New(fault.Unavailable, "the database is away"), errors.New("a defect")} {
		fx := newFixture(t, publisher.ByPolicies)
		fx.keys.texts = []string{key.record()}
		fx.addPolicy(t, "p1", maker, domainDraft())
		fx.publishers.recordErr = failure
		if _, err := fx.prove(t, key); !errors.Is(err, failure) {
			t.Errorf("got %v, want %v", err, failure)
		}
		if p := fx.policy(t, "p1"); !p.LastUsedAt.IsZero() || p.UsedKey != "" {
			t.Errorf("the use was stored without its event: %+v", p)
		}
		if len(fx.publishers.issued)+len(fx.publishers.notices) != 0 {
			t.Errorf("issued %v, notices %v", fx.publishers.issued, fx.publishers.notices)
		}
	}
}

// TestRefusalThatCannotBeRecordedFails checks that an attacker cannot try proofs while the audit
// log is away and get answers.
func TestRefusalThatCannotBeRecordedFails(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, publisher.ByPolicies)
	fx.publishers.recordErr = fault.New(fault.Unavailable, "the database is away")
	_, err := fx.prove(t, newSigner(1))
	requireFault(t, err, fault.Unavailable)
}

// TestCancelledCallerIsRecorded cancels the request while the keys of the domain are read.
func TestCancelledCallerIsRecorded(t *testing.T) {
	t.Parallel()
	key := newSigner(1)
	for name, texts := range map[string][]string{"a proof that fails": nil, "a proof that holds": {key.record()}} {
		fx := newFixture(t, publisher.ByPolicies)
		fx.addPolicy(t, "p1", maker, domainDraft())
		ctx, cancel := context.WithCancel(t.Context())
		fx.keys.texts, fx.keys.during = texts, cancel
		if _, err := fx.ProveDomain(ctx, fx.newRequest(key)); err == nil {
			t.Errorf("%s: a token was issued to a caller who is gone", name)
		}
		if len(fx.publishers.events) != 1 || fx.publishers.events[0].Reason == "" {
			t.Errorf("%s: the events are %+v, want one refusal", name, fx.publishers.events)
		}
	}
}

// TestInternalErrorsAreRecordedWithoutDetails lets a store fail in a way that no one has
// classified.
func TestInternalErrorsAreRecordedWithoutDetails(t *testing.T) {
	t.Parallel()
	defect := errors.New("password of the database is wrong")
	fx, key := newPublished(t, publisher.ByPolicies)
	fx.policies.err = defect
	if _, err := fx.prove(t, key); !errors.Is(err, defect) {
		t.Errorf("got %v, want %v", err, defect)
	}
	fx.requireEvent(t, authority.ProofAttempt{
		Method: publisher.DNS, Domain: domainName, Key: key.fingerprint(), Reason: "internal error",
	})
}

// TestNotices checks who gets a notice of what (contract P-18).
func TestNotices(t *testing.T) {
	t.Parallel()
	key, other := newSigner(1), newSigner(2)
	fx := newFixture(t, publisher.ByPolicies)
	fx.keys.texts = []string{key.record(), other.record()}
	fx.addPolicy(t, "p1", maker, domainDraft())
	fx.addPolicy(t, "p2", "", domainDraft())
	foreign := domainDraft()
	foreign.Domain, foreign.Pattern = "example.net", "net.example/*"
	fx.addPolicy(t, "p3", "bea", foreign)
	prove := func(s signer, what string, want ...authority.PublisherNotice) {
		t.Helper()
		fx.publishers.notices = nil
		_, _ = fx.prove(t, s)
		for i := range want {
			want[i].Subject, want[i].Pattern, want[i].Address, want[i].At = domainName, mustPattern(t, "com.example/*"),
				address, fx.clock.Now()
		}
		if got := fx.publishers.notices; len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the notices are %+v, want %+v", what, got, want)
		}
	}
	prove(key, "first use", authority.PublisherNotice{Maker: maker})
	prove(key, "second use")
	prove(other, "first use with another key", authority.PublisherNotice{Maker: maker})
	prove(other, "second use with another key")
	fx.addPolicy(t, "p4", maker, domainDraft())
	fx.addPolicy(t, "p5", "bea", domainDraft())
	prove(newSigner(3), "a failed proof, once for each maker",
		authority.PublisherNotice{Maker: maker, Failed: true}, authority.PublisherNotice{Maker: "bea", Failed: true})
	fx.keys.err = fault.New(fault.Unavailable, "no answer")
	prove(key, "a proof that cannot be checked")
}

func TestNoticesOfTokens(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, publisher.ByPolicies)
	fx.addPolicy(t, "p1", maker, gitHubDraft())
	other := gitHubDraft()
	other.Claims = map[string]string{"repository": "acme/other"}
	fx.addPolicy(t, "p2", "bea", other)
	if _, err := fx.proveJob(t, publisher.GitHubOIDC, newJob("1", "10", "20")); err != nil {
		t.Fatal(err)
	}
	_, _ = fx.proveJob(t, publisher.GitHubOIDC, newJob("2", "11", "21"))
	want := authority.PublisherNotice{
		Maker: maker, Subject: gitHubIssuer + " repo:acme/tools:ref:refs/heads/main",
		Pattern: mustPattern(t, "io.github.acme/*"), Address: address, At: epoch,
	}
	failed := want
	failed.Failed = true
	wantEqual(t, fx.publishers.notices, []authority.PublisherNotice{want, failed}, "the notices")
}

func TestUnknownAddressIsAccepted(t *testing.T) {
	t.Parallel()
	fx, key := newPublished(t, publisher.Open)
	r := fx.newRequest(key)
	r.Address = netip.Addr{}
	if _, err := fx.ProveDomain(t.Context(), r); err != nil || fx.publishers.events[0].Address.IsValid() {
		t.Errorf("error %v, events %+v", err, fx.publishers.events)
	}
}
