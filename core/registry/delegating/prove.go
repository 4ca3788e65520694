package delegating

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/domainkeys"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/servicestore"
	"github.com/tollgate-dev/tollgate/ports/singleuse"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// ProverPorts are the dependencies of a Prover. All fields are required.
type ProverPorts struct {
	Transactions transaction.Runner
	Policies     registrystore.Policies
	Services     servicestore.Services
	Checker      *permit.Checker
	Keys         domainkeys.Sources
	Identities   identity.Verifier
	Used         singleuse.Store
	Publishers   authority.Publishers
	Throttle     throttle.Throttle
	Clock        clock.Clock
}

// Prover exchanges proofs for tokens. It is safe for concurrent use.
type Prover struct {
	config permit.Config
	ports  ProverPorts
}

// NewProver returns a prover.
func NewProver(c permit.Config, p ProverPorts) *Prover { return &Prover{c, p} }

// Client is the sender of a proof.
type Client struct {
	Address netip.Addr // for the audit log
	Key     string     // under which its proofs are counted
}

// DomainRequest is a proof of a domain as it was sent.
type DomainRequest struct {
	Client
	Method    publisher.Method // DNS or HTTP
	Domain    string
	Timestamp string // RFC 3339
	Signature string // of Timestamp, in hexadecimal digits
}

// IdentityRequest is a proof by an ID token as it was sent.
type IdentityRequest struct {
	Client
	Method publisher.Method // OIDC or GitHubOIDC
	Token  string
}

// Token is a token of a publisher.
type Token struct {
	Text      string
	ExpiresAt time.Time
}

// Switched returns fault.NotFound if no proofs are accepted (contract P-10).
func (p *Prover) Switched() error {
	if p.config.Mode == publisher.Off {
		return fault.New(fault.NotFound, "proofs of publishers are switched off on this registry")
	}
	return nil
}

// ProveDomain returns a token for a proof of a domain (contract P-3 to P-8).
//
// Errors: fault.NotFound while proofs are off, fault.Invalid for a malformed request,
// fault.Exhausted over a limit, fault.Unauthenticated for a proof that fails or that no one has
// allowed, fault.Unavailable when the keys of the domain cannot be read or a dependency fails.
func (p *Prover) ProveDomain(ctx context.Context, r DomainRequest) (Token, error) {
	if err := p.Switched(); err != nil {
		return Token{}, err
	}
	domain, err := publisher.ParseDomain(r.Domain)
	if err != nil {
		return Token{}, err
	}
	signature, err := publisher.ParseSignature(r.Signature)
	if err != nil {
		return Token{}, err
	}
	fresh := publisher.CheckTimestamp(r.Timestamp, p.ports.Clock.Now())
	if fault.Is(fresh, fault.Invalid) {
		return Token{}, fresh
	}
	if err := p.countAttempt(ctx, throttle.PublisherAddress, r.Key); err != nil {
		return Token{}, err
	}
	proof := publisher.Proof{Method: r.Method, Domain: domain}
	a := &attempt{proof: &proof, address: r.Address}
	if fresh != nil {
		return Token{}, p.refuse(ctx, a, fresh)
	}
	if err := p.countAttempt(ctx, throttle.PublisherDomain, domain.String()); err != nil {
		return Token{}, err
	}
	if proof.Key, err = p.findSigner(ctx, r.Method, domain, r.Timestamp, signature); err != nil {
		return Token{}, p.refuse(ctx, a, err)
	}
	return p.exchange(ctx, a, use{
		key: "domain " + domain.String() + " " + string(signature.Canonical()), ttl: proofTTL,
		again: fault.New(fault.Unauthenticated,
			"this proof was used before: one login per second and key: repeat in a second").After(time.Second),
	})
}

// ProveIdentity returns a token for a proof by an ID token (contract P-9). The errors are those of
// ProveDomain; fault.NotFound also if the service is not configured for the method.
func (p *Prover) ProveIdentity(ctx context.Context, r IdentityRequest) (Token, error) {
	if err := p.Switched(); err != nil {
		return Token{}, err
	}
	if err := p.countAttempt(ctx, throttle.PublisherAddress, r.Key); err != nil {
		return Token{}, err
	}
	verified, err := p.ports.Identities.Verify(ctx, r.Method, r.Token)
	if fault.Is(err, fault.NotFound) {
		return Token{}, err
	}
	proof := publisher.Proof{Method: r.Method, Identity: verified.Identity}
	a := &attempt{proof: &proof, address: r.Address, unverified: err != nil}
	if err != nil {
		return Token{}, p.refuse(ctx, a, err)
	}
	return p.exchange(ctx, a, p.useOf(verified))
}

// useOf returns the one use of an ID token.
func (p *Prover) useOf(t identity.Token) use {
	left := t.ExpiresAt.Sub(p.ports.Clock.Now()) + clockTolerance
	return use{
		key: "token " + t.Issuer + " " + t.ID, ttl: max(left, time.Second),
		again: fault.New(fault.Unauthenticated, "this proof was used before: make a new one"),
	}
}

const (
	// clockTolerance is how long a proof is remembered after it could no longer be accepted,
	// because the clocks of instances may differ.
	clockTolerance = 20 * time.Second
	// proofTTL is how long the signature of a timestamp is remembered. A timestamp may lie in the
	// future.
	proofTTL = 2*publisher.TimestampTolerance + clockTolerance
)

// countAttempt counts an attempt against a limit (contract P-19). It returns fault.Exhausted over
// the limit, and fault.Unavailable when the counter store is not available.
func (p *Prover) countAttempt(ctx context.Context, scope throttle.Scope, key string) error {
	v, err := p.ports.Throttle.Try(ctx, scope, key)
	if err != nil {
		return err
	}
	if v.Allowed || v.Unlimited {
		return nil
	}
	what := "from this address"
	if scope == throttle.PublisherDomain {
		what = "of " + key
	}
	return fault.Newf(fault.Exhausted, "too many proofs %s", what).WithDetail("limit", jsonvalue.Number(v.Limit)).
		After(v.RetryAfter(p.ports.Clock.Now()))
}

// use is the one use of a proof (contract P-4).
type use struct {
	key   string        // identifies the proof
	ttl   time.Duration // for which it could be repeated
	again error         // the refusal of a second use
}

// claim returns the refusal if a proof has given a token before.
func (p *Prover) claim(ctx context.Context, u use) error {
	first, err := p.ports.Used.Claim(ctx, u.key, u.ttl)
	if err == nil && !first {
		return u.again
	}
	return err
}

// exchange returns a token for a proof that holds and has not given a token before.
func (p *Prover) exchange(ctx context.Context, a *attempt, u use) (Token, error) {
	permissions, err := p.admitProof(ctx, a, u)
	if err != nil {
		return Token{}, p.refuse(ctx, a, err)
	}
	text, expires, err := p.ports.Publishers.IssueToken(ctx, authority.Publisher{
		Method: a.proof.Method, Subject: a.proof.Subject(), Permissions: permissions,
	})
	return Token{text, expires}, err
}

// findSigner returns the published key of a domain that made the signature of a timestamp. It
// returns fault.Unauthenticated if it does not exist, with the reason, and the error of the source.
func (p *Prover) findSigner(
	ctx context.Context, m publisher.Method, d publisher.Domain, timestamp string, s publisher.Signature,
) (publisher.Key, error) {
	texts, err := p.ports.Keys.Of(m).Texts(ctx, d)
	if err != nil {
		return publisher.Key{}, err
	}
	keys, problems := publisher.ParseRecords(texts)
	for _, key := range keys {
		if key.Verify([]byte(timestamp), s) {
			return key, nil
		}
	}
	switch {
	case len(keys) > 0:
		return publisher.Key{}, fault.Newf(fault.Unauthenticated,
			"the signature was made with none of the keys %s: %s; "+
				"if you have changed the key, an old record may still be served", place(m, d), joinFingerprints(keys))
	case len(problems) > 0:
		reason, _ := fault.As(problems[0])
		return publisher.Key{}, fault.Newf(fault.Unauthenticated, "the record %s cannot be used: %s", place(m, d),
			reason.Message)
	}
	return publisher.Key{}, fault.Newf(fault.Unauthenticated,
		"there is no record \"v=MCPv1; k=ALGORITHM; p=KEY\" %s", place(m, d))
}

// place returns where a domain publishes its keys, with a preposition.
func place(m publisher.Method, d publisher.Domain) string {
	if m == publisher.HTTP {
		return "at https://" + d.String() + "/.well-known/mcp-registry-auth"
	}
	return "in the TXT records of " + d.String()
}

func joinFingerprints(keys []publisher.Key) string {
	return strings.Join(each.Map(keys, publisher.Key.Fingerprint), ", ")
}
