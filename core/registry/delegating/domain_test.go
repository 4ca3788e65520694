package delegating_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestProofOfADomainGivesAToken(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]signer{"ed25519": newSigner(1), "ecdsap384": newP384(t)} {
		for _, method := range []publisher.Method{publisher.DNS, publisher.HTTP} {
			fx := newFixture(t, publisher.ByPolicies)
			d := domainDraft()
			d.Method, d.Actions = string(method), []string{"publish", "status"}
			want := fx.addPolicy(t, "p1", maker, d)
			fx.keys.texts = []string{key.record()}
			r := fx.newRequest(key)
			r.Method, r.Domain = method, "Example.COM"
			got, err := fx.ProveDomain(t.Context(), r)
			if err != nil || got != (delegating.Token{Text: "token", ExpiresAt: epoch.Add(5 * time.Minute)}) {
				t.Errorf("%s by %s: token %+v, error %v", name, method, got, err)
			}
			fx.requireGiven(t, "p1")
			issued := fx.publishers.issued[0]
			if issued.Method != method || issued.Subject != domainName ||
				issued.Permissions[0].Pattern != want.Pattern || len(issued.Permissions[0].Actions) != 2 {
				t.Errorf("%s by %s: the token is for %+v", name, method, issued)
			}
		}
	}
}

func TestProofsThatAreOff(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, publisher.Off)
	key := newSigner(1)
	fx.addPolicy(t, "p1", maker, domainDraft())
	fx.keys.texts = []string{key.record()}
	_, byDomain := fx.prove(t, key)
	_, byToken := fx.proveJob(t, publisher.GitHubOIDC, newJob("1", "1", "2"))
	for _, err := range []error{fx.Switched(), byDomain, byToken} {
		requireFault(t, err, fault.NotFound, "switched off")
	}
	if len(fx.throttle.tries)+fx.keys.lookups+fx.identities.calls+len(fx.publishers.events) != 0 {
		t.Errorf("a proof that is off was processed: %+v", fx.publishers.events)
	}
	if err := newFixture(t, publisher.ByPolicies).Switched(); err != nil {
		t.Errorf("proofs by policies: %v", err)
	}
}

// TestMalformedProofCostsNothing checks that a malformed request counts against no limit, causes no
// lookup and is not recorded.
func TestMalformedProofCostsNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*delegating.DomainRequest)
		part   string
	}{
		"no domain":         {func(r *delegating.DomainRequest) { r.Domain = "" }, "domain"},
		"IP address":        {func(r *delegating.DomainRequest) { r.Domain = "192.0.2.1" }, "domain"},
		"below github.io":   {func(r *delegating.DomainRequest) { r.Domain = "acme.github.io" }, "domain"},
		"no timestamp":      {func(r *delegating.DomainRequest) { r.Timestamp = "" }, "timestamp"},
		"timestamp in Unix": {func(r *delegating.DomainRequest) { r.Timestamp = "1700000000" }, "timestamp"},
		"no signature":      {func(r *delegating.DomainRequest) { r.Signature = "" }, "signed_timestamp"},
		"signature base64":  {func(r *delegating.DomainRequest) { r.Signature = "zz" }, "signed_timestamp"},
	} {
		fx := newFixture(t, publisher.ByPolicies)
		fx.addPolicy(t, "p1", maker, domainDraft())
		r := fx.newRequest(newSigner(1))
		test.change(&r)
		_, err := fx.ProveDomain(t.Context(), r)
		t.Run(name, func(t *testing.T) { requireFault(t, err, fault.Invalid, test.part) })
		if len(fx.throttle.tries)+fx.keys.lookups+len(fx.publishers.events)+len(fx.publishers.notices) != 0 {
			t.Errorf("%s: tries %v, %d lookups, events %v", name, fx.throttle.tries, fx.keys.lookups,
				fx.publishers.events)
		}
	}
}

func TestLimitsComeBeforeLookups(t *testing.T) {
	t.Parallel()
	for scope, part := range map[throttle.Scope]string{
		throttle.PublisherAddress: "too many proofs from this address",
		throttle.PublisherDomain:  "too many proofs of example.com",
	} {
		fx := newFixture(t, publisher.ByPolicies)
		fx.throttle.refused = scope
		_, err := fx.ProveDomain(t.Context(), fx.newRequest(newSigner(1)))
		requireFault(t, err, fault.Exhausted, part)
		if f, _ := fault.As(err); f.RetryAfter != 30*time.Second || f.Details.Int("limit") != 20 {
			t.Errorf("%s: try again after %s, limit %v", scope, f.RetryAfter, f.Details["limit"])
		}
		if fx.keys.lookups != 0 || len(fx.used.claimed) != 0 {
			t.Errorf("%s: %d lookups", scope, fx.keys.lookups)
		}
	}
	fx := newFixture(t, publisher.ByPolicies)
	fx.throttle.refused = throttle.PublisherAddress
	_, err := fx.proveJob(t, publisher.GitHubOIDC, newJob("1", "1", "2"))
	requireFault(t, err, fault.Exhausted, "from this address")
	_, err = fx.proveWorkload(t, "ci", newJob("1", "10", "20"))
	requireFault(t, err, fault.Exhausted, "from this address")
	if fx.identities.calls != 0 {
		t.Error("the token was verified")
	}
	fx.throttle.err = fault.New(fault.Unavailable, "counters are away")
	_, err = fx.ProveDomain(t.Context(), fx.newRequest(newSigner(1)))
	requireFault(t, err, fault.Unavailable)
}

func TestProofsCountForAddressAndDomain(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, publisher.ByPolicies)
	_, _ = fx.prove(t, newSigner(1))                                   // refused
	_, _ = fx.proveJob(t, publisher.GitHubOIDC, newJob("1", "1", "2")) // refused
	want := map[string]int{"publisher_address client": 2, "publisher_domain example.com": 1}
	wantEqual(t, fx.throttle.tries, want, "the limits counted")
}

func TestStaleTimestampIsRefusedWithTheTimeOfTheService(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{-16 * time.Second, 16 * time.Second} {
		fx := newFixture(t, publisher.ByPolicies)
		key := newSigner(1)
		fx.addPolicy(t, "p1", maker, domainDraft())
		fx.keys.texts = []string{key.record()}
		r := fx.newRequest(key)
		fx.clock.Advance(age)
		_, err := fx.ProveDomain(t.Context(), r)
		requireFault(t, err, fault.Unauthenticated,
			"the timestamp differs from the time of this service, "+epoch.Add(age).Format(time.RFC3339))
		if fx.keys.lookups != 0 || fx.throttle.tries["publisher_address client"] != 1 ||
			len(fx.publishers.events) != 1 {
			t.Errorf("%s: %d lookups, tries %v, events %v", age, fx.keys.lookups, fx.throttle.tries,
				fx.publishers.events)
		}
	}
}

func TestRecordsOfADomain(t *testing.T) {
	t.Parallel()
	key, second, third := newSigner(1), newSigner(2), newP384(t)
	const broken = "v=MCPv1; k=ed25519; p=AAAA"
	small := "v=MCPv1; k=ed25519; p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	for name, test := range map[string]struct {
		texts  []string
		source error
		kind   fault.Kind
		parts  []string // of the message; nil if the proof is accepted
	}{
		"the key":             {texts: []string{key.record()}},
		"among other texts":   {texts: []string{"v=spf1 -all", key.record(), "verification=1"}},
		"among three, broken": {texts: []string{broken, second.record(), key.record()}},
		"none": {
			nil, nil, fault.Unauthenticated, []string{"there is no record", "the TXT records of example.com"},
		},
		"other texts only": {[]string{"v=spf1 -all"}, nil, fault.Unauthenticated, []string{"there is no record"}},
		"a broken record":  {[]string{broken}, nil, fault.Unauthenticated, []string{"cannot be used", "32 bytes"}},
		"a key of small order": {
			[]string{small}, nil, fault.Unauthenticated, []string{"cannot be used", "everybody can sign"},
		},
		"other keys": {
			[]string{second.record(), broken, third.record()}, nil, fault.Unauthenticated,
			[]string{
				"none of the keys", "the TXT records of example.com", second.fingerprint(), third.fingerprint(),
				"changed the key",
			},
		},
		"refused by the source": {
			nil, fault.New(fault.Unauthenticated, "the domain does not exist"), fault.Unauthenticated, []string{
				"does not exist",
			},
		},
		"no answer": {
			nil, fault.New(fault.Unavailable, "no answer from the resolver"), fault.Unavailable, []string{
				"no answer from the resolver",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t, publisher.ByPolicies)
			fx.addPolicy(t, "p1", maker, domainDraft())
			fx.keys.texts, fx.keys.err = test.texts, test.source
			_, err := fx.prove(t, key)
			if test.parts == nil {
				must.Succeed(t, err)
				return
			}
			requireFault(t, err, test.kind, test.parts...)
			if test.kind == fault.Unavailable && strings.Contains(err.Error(), "record") {
				t.Errorf("a failure says that there is no record: %v", err)
			}
			if len(fx.publishers.issued) != 0 || len(fx.used.claimed) != 0 {
				t.Errorf("issued %v, claimed %v", fx.publishers.issued, fx.used.claimed)
			}
		})
	}
}

// TestRefusalOfAKey sends another text of the same time than the signed one, and a proof by a page
// that is not there: the refusal names the page.
func TestRefusalOfAKey(t *testing.T) {
	t.Parallel()
	fx, key := newPublished(t, publisher.ByPolicies)
	fx.addPolicy(t, "p1", maker, domainDraft())
	r := fx.newRequest(key)
	r.Timestamp = strings.Replace(r.Timestamp, "Z", "+00:00", 1)
	_, err := fx.ProveDomain(t.Context(), r)
	requireFault(t, err, fault.Unauthenticated, "none of the keys")
	fx.keys.texts = nil
	r = fx.newRequest(key)
	r.Method = publisher.HTTP
	_, err = fx.ProveDomain(t.Context(), r)
	requireFault(t, err, fault.Unauthenticated, "https://example.com/.well-known/mcp-registry-auth")
}

// TestProofIsAcceptedOnce repeats a proof on another instance, which shares the store.
func TestProofIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	key := newP384(t)
	fx := newFixture(t, publisher.ByPolicies)
	fx.addPolicy(t, "p1", maker, domainDraft())
	fx.keys.texts = []string{key.record()}
	other := delegating.NewProver(fx.config, fx.ports)
	r := fx.newRequest(key)
	if _, err := fx.ProveDomain(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for used, ttl := range fx.used.claimed {
		if ttl < 30*time.Second {
			t.Errorf("%q is remembered for %s, but its timestamp is accepted for 30 seconds", used, ttl)
		}
	}
	raw, err := hex.DecodeString(r.Signature)
	must.Succeed(t, err)
	for name, text := range map[string]string{
		"the same": r.Signature, "upper case": strings.ToUpper(r.Signature),
		"the other sign of S": hex.EncodeToString(negateS(raw)),
	} {
		r.Signature = text
		_, err := other.ProveDomain(t.Context(), r)
		t.Run(name, func(t *testing.T) { requireFault(t, err, fault.Unauthenticated, "used before") })
	}
	wantEqual(t, len(fx.publishers.issued), 1, "tokens were issued for one proof")
}

// TestJobsOfAMatrix has jobs that log in with one key at the same time: the signatures of an ECDSA
// key all differ, so that each gets a token; of an Ed25519 key they are one (contract P-4).
func TestJobsOfAMatrix(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]signer{"ecdsap384": newP384(t), "ed25519": newSigner(1)} {
		fx := newFixture(t, publisher.ByPolicies)
		fx.addPolicy(t, "p1", maker, domainDraft())
		fx.keys.texts = []string{key.record()}
		passed := 0
		for range 3 {
			if _, err := fx.ProveDomain(t.Context(), fx.newRequest(key)); err == nil {
				passed++
			}
		}
		if want := map[string]int{"ecdsap384": 3, "ed25519": 1}[name]; passed != want {
			t.Errorf("%s: %d of 3 logins pass, want %d", name, passed, want)
		}
	}
}

// TestProofOfAnotherDomainIsAnotherProof uses one key and one timestamp for two domains.
func TestProofOfAnotherDomainIsAnotherProof(t *testing.T) {
	t.Parallel()
	fx, key := newPublished(t, publisher.Open)
	r := fx.newRequest(key)
	for _, r.Domain = range []string{domainName, "example.net"} {
		_, err := fx.ProveDomain(t.Context(), r)
		must.Succeed(t, err)
	}
}

// TestProofWithoutATokenIsNotUsedUp checks that a proof that gave no token can be repeated until it
// gives one, and not after that (contract P-4).
func TestProofWithoutATokenIsNotUsedUp(t *testing.T) {
	t.Parallel()
	fx, key := newPublished(t, publisher.ByPolicies)
	r := fx.newRequest(key)
	refused := func(kind fault.Kind, parts ...string) {
		t.Helper()
		_, err := fx.ProveDomain(t.Context(), r)
		requireFault(t, err, kind, parts...)
		if len(fx.used.claimed) != 0 {
			t.Errorf("used up is %v, without a token", fx.used.claimed)
		}
	}
	fx.keys.err = fault.New(fault.Unavailable, "no answer")
	refused(fault.Unavailable, "no answer")
	fx.keys.err = nil
	refused(fault.Unauthenticated, "nobody has allowed it")
	fx.addPolicy(t, "p1", maker, domainDraft())
	fx.publishers.recordErr = fault.New(fault.Unavailable, "the audit log is away")
	refused(fault.Unavailable)
	fx.publishers.recordErr = nil
	_, err := fx.ProveDomain(t.Context(), r)
	must.Succeed(t, err)
	_, err = fx.ProveDomain(t.Context(), r)
	requireFault(t, err, fault.Unauthenticated, "used before", "one login per second and key: repeat in a second")
	if f, _ := fault.As(err); f.RetryAfter != time.Second {
		t.Errorf("the second use may be repeated after %s, want a second", f.RetryAfter)
	}
}
