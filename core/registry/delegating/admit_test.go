package delegating_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestPolicies proves the domain of the tests with the first key.
func TestPolicies(t *testing.T) {
	t.Parallel()
	key, other := newSigner(1), newSigner(2)
	pinned := func(s signer) publisher.Draft {
		d := domainDraft()
		d.KeyFingerprint = s.fingerprint()
		return d
	}
	gone := func(usedKey signer) func(*publisher.Policy) {
		return func(p *publisher.Policy) {
			p.GoneSince, p.LastUsedAt = epoch.Add(-73*time.Hour), epoch.Add(-90*time.Hour)
			p.UsedKey = string(usedKey.algorithm) + ":" + usedKey.public
		}
	}
	for name, test := range map[string]struct {
		prepare func(t *testing.T, fx *fixture)
		refused []string // parts of the sentence; nil if the proof is allowed
	}{
		"none": {func(*testing.T, *fixture) {}, []string{
			"the proof of example.com holds, but nobody has allowed it to publish here",
			"tollgate publisher add --method dns --domain example.com --pattern PATTERN",
		}},
		"for another domain": {func(t *testing.T, fx *fixture) {
			d := domainDraft()
			d.Domain, d.Pattern = "example.net", "net.example/*"
			fx.addPolicy(t, "p1", maker, d)
		}, []string{"nobody has allowed it"}},
		"for another method": {func(t *testing.T, fx *fixture) {
			d := domainDraft()
			d.Method = "http"
			fx.addPolicy(t, "p1", maker, d)
		}, []string{"nobody has allowed it"}},
		"any key":         {func(t *testing.T, fx *fixture) { fx.addPolicy(t, "p1", maker, domainDraft()) }, nil},
		"of an operator":  {func(t *testing.T, fx *fixture) { fx.addPolicy(t, "p1", "", domainDraft()) }, nil},
		"this key pinned": {func(t *testing.T, fx *fixture) { fx.addPolicy(t, "p1", maker, pinned(key)) }, nil},
		"another key pinned": {func(t *testing.T, fx *fixture) {
			fx.addPolicy(t, "p1", maker, pinned(other))
		}, []string{
			"holds, but it may publish nothing here", "policy p1 does not admit it: it is pinned to another key",
		}},
		"expired": {func(t *testing.T, fx *fixture) {
			fx.addPolicy(t, "p1", maker, domainDraft(), func(p *publisher.Policy) { p.ExpiresAt = epoch })
		}, []string{"policy p1 does not admit it: it has expired"}},
		"maker disabled": {func(t *testing.T, fx *fixture) {
			fx.addPolicy(t, "p1", maker, domainDraft())
			fx.makers[maker] = false
		}, []string{"policy p1 does not admit it: the person who created it is disabled"}},
		"maker unknown": {
			func(t *testing.T, fx *fixture) { fx.addPolicy(t, "p1", "zoe", domainDraft()) }, []string{
				"may no longer publish its whole pattern",
			},
		},
		"grant of the maker removed": {func(t *testing.T, fx *fixture) {
			fx.addPolicy(t, "p1", maker, domainDraft())
			must.Succeed(t, fx.grants.Remove(t.Context(), newGrant(t, maker, "com.example*")))
		}, []string{"may no longer publish its whole pattern"}},
		"grant of the maker narrowed": {func(t *testing.T, fx *fixture) {
			fx.addPolicy(t, "p1", maker, domainDraft())
			must.Succeed(t, fx.grants.Remove(t.Context(), newGrant(t, maker, "com.example*")))
			fx.grant(t, maker, "com.example/weather")
		}, []string{"may no longer publish its whole pattern"}},
		"unproven, with its own key": {
			func(t *testing.T, fx *fixture) { fx.addPolicy(t, "p1", maker, domainDraft(), gone(key)) }, nil,
		},
		"unproven, with another key": {func(t *testing.T, fx *fixture) {
			fx.addPolicy(t, "p1", maker, domainDraft(), gone(other))
		}, []string{
			"policy p1 does not admit it: the domain had lost the key of the policy, and this is another key",
		}},
		"unproven, pinned": {
			func(t *testing.T, fx *fixture) { fx.addPolicy(t, "p1", maker, pinned(key), gone(other)) }, nil,
		},
		"one of two": {func(t *testing.T, fx *fixture) {
			fx.addPolicy(t, "p0", maker, pinned(other))
			fx.addPolicy(t, "p1", "bea", domainDraft())
		}, nil},
		"removed in between": {func(t *testing.T, fx *fixture) {
			fx.addPolicy(t, "p1", maker, domainDraft())
			fx.policies.between = func() {
				if err := fx.policies.Remove(t.Context(), "p1"); err != nil {
					t.Error(err)
				}
			}
		}, []string{"nobody has allowed it"}},
		"expired in between": {func(t *testing.T, fx *fixture) {
			fx.addPolicy(t, "p1", maker, domainDraft())
			fx.policies.between = func() {
				err := fx.policies.Policies.Update(t.Context(), "p1", func(p *publisher.Policy) error {
					p.ExpiresAt = epoch
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		}, []string{"it has expired"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t, publisher.ByPolicies)
			fx.keys.texts = []string{key.record()}
			test.prepare(t, fx)
			_, err := fx.prove(t, key)
			if test.refused != nil {
				requireFault(t, err, fault.Unauthenticated, test.refused...)
				if len(fx.publishers.issued) != 0 {
					t.Errorf("issued %+v", fx.publishers.issued)
				}
				return
			}
			must.Succeed(t, err)
			fx.requireGiven(t, "p1")
			used := fx.policy(t, "p1")
			if !used.LastUsedAt.Equal(fx.clock.Now()) || used.UsedKey != "ed25519:"+key.public ||
				!used.GoneSince.IsZero() {
				t.Errorf("the policy after its use is %+v", used)
			}
		})
	}
}

func TestEachPolicyGivesAPermission(t *testing.T) {
	t.Parallel()
	fx, key := newPublished(t, publisher.ByPolicies)
	var ids []registry.PolicyID
	for i := range 32 {
		ids = append(ids, registry.PolicyID(fmt.Sprintf("p%02d", i)))
		fx.addPolicy(t, ids[i], maker, domainDraft())
	}
	_, err := fx.prove(t, key)
	must.Succeed(t, err)
	fx.requireGiven(t, ids...)
	fx.addPolicy(t, "p32", maker, domainDraft())
	_, err = fx.prove(t, key)
	requireFault(t, err, fault.Unauthenticated, "more than 32 policies admit this proof: remove some")
	if !fx.policy(t, "p32").LastUsedAt.IsZero() {
		t.Error("a proof that was refused has used a policy")
	}
}

// TestStoresFail checks that a proof gives no token while something that it needs is away.
func TestStoresFail(t *testing.T) {
	t.Parallel()
	away := fault.New(fault.Unavailable, "it is away")
	for name, fail := range map[string]func(*fixture){
		"policies":    func(fx *fixture) { fx.policies.err = away },
		"used proofs": func(fx *fixture) { fx.used.err = away },
		"tokens":      func(fx *fixture) { fx.publishers.issueErr = away },
	} {
		fx, key := newPublished(t, publisher.Open)
		fail(fx)
		token, err := fx.prove(t, key)
		requireFault(t, err, fault.Unavailable, "it is away")
		if token.Text != "" || len(fx.publishers.issued) != 0 {
			t.Errorf("%s: token %+v, issued %v", name, token, fx.publishers.issued)
		}
	}
}

func TestOpenMode(t *testing.T) {
	t.Parallel()
	for method, want := range map[publisher.Method][]string{
		publisher.DNS: {"com.example/*", "com.example.*"}, publisher.HTTP: {"com.example/*"},
		publisher.GitHubOIDC: {"io.github.acme/*"},
	} {
		fx, key := newPublished(t, publisher.Open)
		var err error
		if method.ByDomain() {
			r := fx.newRequest(key)
			r.Method = method
			_, err = fx.ProveDomain(t.Context(), r)
		} else {
			_, err = fx.proveJob(t, method, newJob("1", "1", "2"))
		}
		must.Succeed(t, err)
		var got []string
		for _, p := range fx.publishers.issued[0].Permissions {
			got = append(got, p.Pattern.String())
			if p.Policy != "" || !slices.Equal(p.Actions, []publisher.Action{publisher.Publish, publisher.Status}) {
				t.Errorf("%s: permission %+v", method, p)
			}
		}
		wantEqual(t, got, want, "%s: permissions", method)
	}
	fx, key := newPublished(t, publisher.Open)
	fx.addPolicy(t, "p1", maker, domainDraft())
	_, err := fx.prove(t, key)
	must.Succeed(t, err)
	fx.requireGiven(t, "", "", "p1")
}

// TestOtherIssuersNeedAPolicy proves by an ID token of a configured issuer, in a registry that is
// open to everybody.
func TestOtherIssuersNeedAPolicy(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, publisher.Open)
	job := newJob("1", "1", "2")
	job.Issuer, job.Subject = otherIssuer, "project:acme/tools"
	_, err := fx.proveJob(t, publisher.OIDC, job)
	requireFault(t, err, fault.Unauthenticated,
		"the proof of "+otherIssuer+" project:acme/tools holds, but nobody has allowed it", "--method oidc --pattern")
	fx.addPolicy(t, "p1", maker, publisher.Draft{
		Method: "oidc", Pattern: "com.example/*", Issuer: otherIssuer, Subject: "project:acme/*",
	})
	fx.addPolicy(t, "p2", maker, publisher.Draft{
		Method: "oidc", Pattern: "com.example/*", Issuer: otherIssuer, Subject: "project:other/*",
	})
	job.ID = "2"
	if _, err := fx.proveJob(t, publisher.OIDC, job); err != nil {
		t.Fatal(err)
	}
	fx.requireGiven(t, "p1")
	wantEqual(t, fx.publishers.issued[0].Subject, otherIssuer+" project:acme/tools", "the subject of the token")
}

func TestTokensThatDoNotHold(t *testing.T) {
	t.Parallel()
	for _, failure := range []*fault.Error{
		fault.New(fault.Unauthenticated, "the audience is another"),
		fault.New(fault.Unavailable, "no answer from the issuer"),
		fault.New(fault.NotFound, "no such proofs here"),
	} {
		fx := newFixture(t, publisher.Open)
		fx.addPolicy(t, "p1", maker, gitHubDraft())
		fx.identities.token, fx.identities.err = newJob("1", "1", "2"), failure
		_, err := fx.ProveIdentity(t.Context(), gitHubRequest())
		requireFault(t, err, failure.Kind, failure.Message)
		if len(fx.used.claimed) != 0 || len(fx.publishers.issued) != 0 || len(fx.publishers.notices) != 0 {
			t.Errorf("%s: claimed %v, issued %v, notices %v", failure, fx.used.claimed, fx.publishers.issued,
				fx.publishers.notices)
		}
		if recorded := len(fx.publishers.events) == 1; recorded != (failure.Kind != fault.NotFound) {
			t.Errorf("%s: the events are %+v", failure, fx.publishers.events)
		}
	}
}

// TestTokenIsAcceptedOnce also has a token that has just expired: the verifier tolerates some
// difference of the clocks, and a store claims nothing for less than a second.
func TestTokenIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	for expires, least := range map[time.Duration]time.Duration{
		10 * time.Minute: 10 * time.Minute, -time.Minute: time.Second,
	} {
		fx := newFixture(t, publisher.Open)
		job := newJob("id", "1", "2")
		job.ExpiresAt = epoch.Add(expires)
		_, err := fx.proveJob(t, publisher.GitHubOIDC, job)
		must.Succeed(t, err)
		for used, ttl := range fx.used.claimed {
			if ttl < least {
				t.Errorf("%q is remembered for %s, want %s", used, ttl, least)
			}
		}
		_, err = fx.proveJob(t, publisher.GitHubOIDC, job)
		requireFault(t, err, fault.Unauthenticated, "used before")
		job.ID = "another"
		_, err = fx.proveJob(t, publisher.GitHubOIDC, job)
		must.Succeed(t, err)
		job.Issuer = otherIssuer
		_, err = fx.proveJob(t, publisher.OIDC, job)
		requireFault(t, err, fault.Unauthenticated, "nobody has allowed it") // of another issuer, so not used before
	}
}

// TestFirstUseBindsAPolicyForGitHub checks that a policy refuses a repository with the same name
// and other IDs after its first use, as when the repository was renamed and its name taken by
// somebody else (contract P-12).
func TestFirstUseBindsAPolicyForGitHub(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, publisher.ByPolicies)
	fx.addPolicy(t, "p1", maker, gitHubDraft())
	if _, err := fx.proveJob(t, publisher.GitHubOIDC, newJob("1", "10", "20")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"repository_owner_id": "10", "repository_id": "20"}
	if got := fx.policy(t, "p1").Bound; !maps.Equal(got, want) {
		t.Fatalf("the policy is bound to %v, want %v", got, want)
	}
	for name, job := range map[string]identity.Token{
		"another owner": newJob("2", "11", "20"), "another repository": newJob("3", "10", "21"),
		"no IDs": newJob("4", "", ""),
	} {
		_, err := fx.proveJob(t, publisher.GitHubOIDC, job)
		t.Run(name, func(t *testing.T) {
			requireFault(t, err, fault.Unauthenticated,
				"policy p1 does not admit it: the repository or its owner is not the one of the first use")
		})
	}
	if _, err := fx.proveJob(t, publisher.GitHubOIDC, newJob("5", "10", "20")); err != nil {
		t.Errorf("the repository of the first use: %v", err)
	}
}

// TestFirstUsesRace lets another repository of the same name use a policy after it was read and
// before its use is stored.
func TestFirstUsesRace(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, publisher.ByPolicies)
	fx.addPolicy(t, "p1", maker, gitHubDraft())
	fx.policies.between = func() {
		if _, err := fx.proveJob(t, publisher.GitHubOIDC, newJob("2", "11", "21")); err != nil {
			t.Errorf("the first to store its use: %v", err)
		}
	}
	_, err := fx.proveJob(t, publisher.GitHubOIDC, newJob("1", "10", "20"))
	requireFault(t, err, fault.Unauthenticated, "is not the one of the first use")
	if len(fx.publishers.issued) != 1 || fx.policy(t, "p1").Bound["repository_owner_id"] != "11" {
		t.Errorf("%d tokens were issued, and the policy is bound to %v", len(fx.publishers.issued),
			fx.policy(t, "p1").Bound)
	}
}

func TestUseIsStoredOnceAMinute(t *testing.T) {
	t.Parallel()
	key, other := newSigner(1), newSigner(2)
	fx := newFixture(t, publisher.ByPolicies)
	fx.keys.texts = []string{key.record(), other.record()}
	fx.addPolicy(t, "p1", maker, domainDraft())
	prove := func(s signer, wantUpdates int, what string) {
		t.Helper()
		if _, err := fx.prove(t, s); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, fx.policies.updates, wantUpdates, "%s", what)
	}
	prove(key, 1, "the first use")
	used := fx.clock.Now()
	prove(key, 1, "a second later")
	fx.clock.Advance(57 * time.Second)
	prove(key, 1, "59 seconds later")
	if got := fx.policy(t, "p1").LastUsedAt; !got.Equal(used) {
		t.Errorf("the last use is %s, want %s", got, used)
	}
	prove(key, 2, "a minute later")
	prove(other, 3, "with another key")
	err := fx.policies.Policies.Update(t.Context(), "p1", func(p *publisher.Policy) error {
		p.GoneSince = fx.clock.Now()
		return nil
	})
	must.Succeed(t, err)
	prove(other, 4, "after its key was gone")
	if p := fx.policy(t, "p1"); !p.GoneSince.IsZero() {
		t.Error("the key was just used, and counts as gone")
	}
	wantEqual(t, len(fx.publishers.events), 6, "proofs were recorded")
}
