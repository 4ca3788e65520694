package delegating_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/domainkeys"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/singleuse"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

var (
	epoch   = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)
	address = netip.MustParseAddr("192.0.2.7")
)

const (
	domainName   = "example.com"
	gitHubIssuer = "https://github.example"
	otherIssuer  = "https://ci.example"
	maker        = "ada" // the person who created the policies
)

// fixture is a prover with its dependencies in memory.
type fixture struct {
	*delegating.Prover
	config     permit.Config
	ports      delegating.ProverPorts
	policies   *racingPolicies
	grants     *fakedb.Grants
	services   *fakedb.Services
	makers     fakeMakers
	keys       *fakeKeys
	identities *fakeIdentities
	used       *fakeUsed
	publishers *fakePublishers
	throttle   *fakeThrottle
	clock      *clocktest.Manual
}

func newFixture(t *testing.T, mode publisher.Mode) *fixture {
	t.Helper()
	db := fakedb.New()
	fx := &fixture{
		config:     permit.Config{Mode: mode, UnprovenAfter: 72 * time.Hour},
		policies:   &racingPolicies{Policies: fakedb.NewPolicies(db)},
		grants:     fakedb.NewGrants(db),
		makers:     fakeMakers{maker: true, "bea": true},
		keys:       &fakeKeys{},
		identities: &fakeIdentities{},
		used:       &fakeUsed{claimed: map[string]time.Duration{}},
		publishers: &fakePublishers{},
		throttle:   &fakeThrottle{tries: map[string]int{}},
		clock:      clocktest.NewManual(epoch),
	}
	for _, holder := range []string{maker, "bea"} {
		fx.grant(t, holder, "com.example*")
		fx.grant(t, holder, "io.github.acme/*")
	}
	checker := permit.NewChecker(fx.config, permit.CheckerPorts{
		Policies: fx.policies, Grants: fx.grants, Makers: fx.makers, Clock: fx.clock,
	})
	fx.services = fakedb.NewServices(db)
	fx.ports = delegating.ProverPorts{
		Transactions: &runner{db, fx.publishers}, Policies: fx.policies, Services: fx.services, Checker: checker, Identities: fx.identities,
		Keys: domainkeys.Sources{DNS: fx.keys, HTTP: fx.keys}, Used: fx.used, Publishers: fx.publishers,
		Throttle: fx.throttle, Clock: fx.clock,
	}
	fx.Prover = delegating.NewProver(fx.config, fx.ports)
	return fx
}

func (fx *fixture) grant(t *testing.T, holder, pattern string) {
	t.Helper()
	must.Succeed(t, fx.grants.Add(t.Context(), newGrant(t, holder, pattern)))
}

func newGrant(t *testing.T, holder, pattern string, actions ...registry.Action) registry.GrantRecord {
	t.Helper()
	actions = append(actions, registry.ActionPublish)
	return registry.GrantRecord{Grant: registry.Grant{
		Holder: registry.Holder(holder), Action: actions[0], Pattern: mustPattern(t, pattern),
	}}
}

func mustPattern(t *testing.T, s string) registry.Pattern {
	t.Helper()
	p, err := registry.ParsePattern(s)
	must.Succeed(t, err)
	return p
}

// domainDraft returns the draft of a policy for the domain of the tests.
func domainDraft() publisher.Draft {
	return publisher.Draft{Method: "dns", Pattern: "com.example/*", Domain: domainName}
}

// gitHubDraft returns the draft of a policy for a repository, by its name.
func gitHubDraft() publisher.Draft {
	return publisher.Draft{
		Method: "github-oidc", Pattern: "io.github.acme/*", Claims: map[string]string{"repository": "acme/tools"},
	}
}

// addPolicy stores a policy of a maker and returns it.
func (fx *fixture) addPolicy(
	t *testing.T, id registry.PolicyID, createdBy string, d publisher.Draft, changes ...func(*publisher.Policy),
) publisher.Policy {
	t.Helper()
	p, err := publisher.NewPolicy(d, publisher.Rules{Issuers: []string{otherIssuer}, GitHubIssuer: gitHubIssuer},
		fx.clock.Now())
	must.Succeed(t, err)
	p.ID, p.CreatedBy = id, registry.Holder(createdBy)
	for _, change := range changes {
		change(&p)
	}
	must.Succeed(t, fx.policies.Add(t.Context(), p))
	return p
}

// policy returns a stored policy.
func (fx *fixture) policy(t *testing.T, id registry.PolicyID) publisher.Policy {
	t.Helper()
	found, err := fx.policies.Policies.Find(t.Context(), registrystore.PolicyQuery{IDs: []registry.PolicyID{id}})
	if err != nil || len(found) != 1 {
		t.Fatalf("policy %s: found %+v, error %v", id, found, err)
	}
	return found[0]
}

// signer is a key pair of a publisher.
type signer struct {
	algorithm publisher.Algorithm
	public    string
	sign      func(message []byte) []byte
}

// record returns the record that publishes the key.
func (s signer) record() string { return "v=MCPv1; k=" + string(s.algorithm) + "; p=" + s.public }

func (s signer) fingerprint() string { return string(s.algorithm) + ":" + s.public[:8] }

// newSigner returns an Ed25519 key pair that depends on the seed only.
func newSigner(seed byte) signer {
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune('a'+seed)), ed25519.SeedSize)))
	public, _ := private.Public().(ed25519.PublicKey)
	return signer{
		publisher.Ed25519, base64.StdEncoding.EncodeToString(public), func(m []byte) []byte {
			return ed25519.Sign(private, m)
		},
	}
}

// newP384 returns a new ECDSA key pair.
func newP384(t *testing.T) signer {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must.Succeed(t, err)
	public := base64.StdEncoding.EncodeToString(elliptic.MarshalCompressed(elliptic.P384(), private.X, private.Y))
	return signer{publisher.ECDSAP384, public, func(m []byte) []byte {
		digest := sha512.Sum384(m)
		r, s, err := ecdsa.Sign(rand.Reader, private, digest[:])
		must.Succeed(t, err)
		return append(r.FillBytes(make([]byte, 48)), s.FillBytes(make([]byte, 48))...)
	}}
}

// negateS returns the other signature that can be made of an ECDSA signature without the key.
func negateS(signature []byte) []byte {
	s := new(big.Int).SetBytes(signature[48:])
	s.Sub(elliptic.P384().Params().N, s)
	return append(append([]byte{}, signature[:48]...), s.FillBytes(make([]byte, 48))...)
}

// newRequest returns a proof of the domain of the tests by a key, made now.
func (fx *fixture) newRequest(s signer) delegating.DomainRequest {
	timestamp := fx.clock.Now().Format(time.RFC3339)
	return delegating.DomainRequest{
		Client: delegating.Client{Address: address, Key: "client"}, Method: publisher.DNS, Domain: domainName,
		Timestamp: timestamp, Signature: hex.EncodeToString(s.sign([]byte(timestamp))),
	}
}

// prove proves the domain of the tests with a key, made now. Each call advances the clock, because
// a signature is accepted once.
func (fx *fixture) prove(t *testing.T, s signer) (delegating.Token, error) {
	t.Helper()
	fx.clock.Advance(time.Second)
	return fx.ProveDomain(t.Context(), fx.newRequest(s))
}

// newJob returns an ID token of a job of the repository acme/tools.
func newJob(id, ownerID, repositoryID string) identity.Token {
	return identity.Token{ID: id, ExpiresAt: epoch.Add(10 * time.Minute), Identity: publisher.Identity{
		Issuer: gitHubIssuer, Subject: "repo:acme/tools:ref:refs/heads/main",
		Claims: map[string]string{
			"repository": "acme/tools", "repository_owner": "acme", "repository_owner_id": ownerID,
			"repository_id": repositoryID,
		},
	}}
}

// proveJob exchanges a verified ID token.
func (fx *fixture) proveJob(t *testing.T, m publisher.Method, token identity.Token) (delegating.Token, error) {
	t.Helper()
	fx.identities.token, fx.identities.err = token, nil
	return fx.ProveIdentity(t.Context(), delegating.IdentityRequest{
		Client: delegating.Client{Address: address, Key: "client"}, Method: m, Token: "text",
	})
}

// requireFault fails the test unless err is a fault of the kind whose message has all parts.
func requireFault(t *testing.T, err error, kind fault.Kind, parts ...string) {
	t.Helper()
	f, ok := fault.As(err)
	if !ok || f.Kind != kind {
		t.Fatalf("got %v of kind %s, want kind %s", err, fault.KindOf(err), kind)
	}
	for _, part := range parts {
		if !strings.Contains(f.Message, part) {
			t.Errorf("the message %q lacks %q", f.Message, part)
		}
	}
}

// requireGiven fails the test unless the last token has permissions of exactly these policies.
func (fx *fixture) requireGiven(t *testing.T, want ...registry.PolicyID) {
	t.Helper()
	if len(fx.publishers.issued) == 0 {
		t.Fatal("no token was issued")
	}
	last := fx.publishers.issued[len(fx.publishers.issued)-1]
	var got []string
	for _, p := range last.Permissions {
		got = append(got, string(p.Policy))
	}
	var ids []string
	for _, id := range want {
		ids = append(ids, string(id))
	}
	if strings.Join(got, " ") != strings.Join(ids, " ") {
		t.Errorf("the token has permissions of %q, want %q", got, ids)
	}
}

// eventsKey is the context key of the events of a transaction.
type eventsKey struct{}

// runner runs transactions whose events count after the commit only.
type runner struct {
	db         *fakedb.Database
	publishers *fakePublishers
}

func (r *runner) Atomically(ctx context.Context, do func(context.Context) error) error {
	pending := &[]authority.ProofAttempt{}
	if err := r.db.Atomically(context.WithValue(ctx, eventsKey{}, pending), do); err != nil {
		return err
	}
	r.publishers.events = append(r.publishers.events, *pending...)
	return nil
}

// racingPolicies calls a function after the first search, as if another call had come in between.
type racingPolicies struct {
	*fakedb.Policies
	between func()
	updates int
	err     error // of all searches
}

func (p *racingPolicies) Find(ctx context.Context, q registrystore.PolicyQuery) ([]publisher.Policy, error) {
	if p.err != nil {
		return nil, p.err
	}
	found, err := p.Policies.Find(ctx, q)
	if between := p.between; between != nil {
		p.between = nil
		between()
	}
	return found, err
}

func (p *racingPolicies) Update(
	ctx context.Context, id registry.PolicyID, change func(*publisher.Policy) error,
) error {
	p.updates++
	return p.Policies.Update(ctx, id, change)
}

// fakeMakers are the people whose accounts are active.
type fakeMakers map[string]bool

func (m fakeMakers) IsActive(_ context.Context, userID string) (bool, error) { return m[userID], nil }

func (fakeMakers) EmailOf(context.Context, string) (string, error) { return "", nil }

// fakeKeys is what every domain publishes.
type fakeKeys struct {
	texts   []string
	err     error
	during  func() // called by each lookup
	lookups int
}

func (k *fakeKeys) Texts(context.Context, publisher.Domain) ([]string, error) {
	k.lookups++
	if k.during != nil {
		k.during()
	}
	return k.texts, k.err
}

// fakeIdentities returns one token for every text.
type fakeIdentities struct {
	token identity.Token
	err   error
	calls int

	audiences []string // of the calls
}

func (i *fakeIdentities) Verify(
	_ context.Context, _ publisher.Method, _ string, audience ...string,
) (identity.Token, error) {
	i.audiences = append(i.audiences, strings.Join(audience, " "))
	i.calls++
	return i.token, i.err
}

// fakeUsed remembers what was claimed, and for how long.
type fakeUsed struct {
	singleuse.Store // for its other methods

	claimed map[string]time.Duration
	err     error
}

func (u *fakeUsed) Claim(_ context.Context, key string, ttl time.Duration) (bool, error) {
	if u.err != nil {
		return false, u.err
	}
	_, again := u.claimed[key]
	u.claimed[key] = ttl
	return !again, nil
}

// fakePublishers keeps what was issued, recorded and reported.
type fakePublishers struct {
	issued    []authority.Publisher
	events    []authority.ProofAttempt
	notices   []authority.PublisherNotice
	workloads []string // names and scopes of the service accounts whose tokens were issued
	recordErr error
	issueErr  error
}

func (p *fakePublishers) IssueToken(_ context.Context, caller authority.Publisher) (string, time.Time, error) {
	if p.issueErr != nil {
		return "", time.Time{}, p.issueErr
	}
	p.issued = append(p.issued, caller)
	return "token", epoch.Add(publisher.TokenTTL), nil
}

func (p *fakePublishers) IssueServiceToken(
	_ context.Context, name string, scopes scope.Set,
) (string, time.Time, error) {
	if p.issueErr != nil {
		return "", time.Time{}, p.issueErr
	}
	p.workloads = append(p.workloads, name+" "+scopes.String())
	return "tgs_token", epoch.Add(10 * time.Minute), nil
}

func (p *fakePublishers) RecordProof(ctx context.Context, a authority.ProofAttempt) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.recordErr != nil {
		return p.recordErr
	}
	if pending, ok := ctx.Value(eventsKey{}).(*[]authority.ProofAttempt); ok {
		*pending = append(*pending, a)
		return nil
	}
	p.events = append(p.events, a)
	return nil
}

func (p *fakePublishers) NotifyMaker(n authority.PublisherNotice) { p.notices = append(p.notices, n) }

// fakeThrottle counts tries, and refuses those of one scope.
type fakeThrottle struct {
	tries   map[string]int
	refused throttle.Scope
	err     error
}

func (l *fakeThrottle) Try(_ context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	l.tries[string(scope)+" "+key]++
	if l.err != nil {
		return throttle.Verdict{}, l.err
	}
	return throttle.Verdict{Allowed: scope != l.refused, Limit: 20, ResetAt: epoch.Add(30 * time.Second)}, nil
}

func (*fakeThrottle) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error {
	return nil
}

// wantFault checks that err is a fault of the kind.
func wantFault(t *testing.T, err error, kind fault.Kind, what string, args ...any) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf(what+": %v, want a fault of kind %s", append(args, err, kind)...)
	}
}

// wantEqual checks that both are deeply equal.
func wantEqual[V any](t *testing.T, got, want V, what string, args ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf(what+": got %v, want %v", append(args, got, want)...)
	}
}

// newPublished returns a prover whose domains publish the key, which it returns too.
func newPublished(t *testing.T, mode publisher.Mode) (*fixture, signer) {
	t.Helper()
	fx, key := newFixture(t, mode), newSigner(1)
	fx.keys.texts = []string{key.record()}
	return fx, key
}

// parsed returns the key as the domain package reads it.
func (s signer) parsed(t *testing.T) publisher.Key {
	t.Helper()
	key, err := publisher.ParseKey(s.algorithm, s.public)
	must.Succeed(t, err)
	return key
}
