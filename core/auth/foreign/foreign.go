// Package foreign finds out to whom an access token belongs that a provider of company sign-in has made
// for this service (contract C-44). The token can only read. Tokens of the service itself are checked by
// package access.
package foreign

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/recent"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
)

// Ports are the dependencies of Tokens. All fields are required.
type Ports struct {
	Verifier   identity.AccessTokens
	Providers  authstore.Providers
	Identities authstore.Identities
	Accounts   authstore.Accounts
	Clock      clock.Clock
	Changes    authstore.Changes
}

// Tokens checks access tokens of providers. It keeps those that were verified, and for less than a
// second what is stored about providers and people. It is safe for concurrent use.
type Tokens struct {
	ports     Ports
	providers providers
	verified  verified
	recent    access.Recent[hash, *authority.Foreign]
}

// hash is the hash of a token.
type hash = [sha256.Size]byte

// New returns Tokens.
func New(p Ports) *Tokens {
	return &Tokens{
		ports: p, providers: providers{reading: make(chan struct{}, 1)},
		recent: access.Recent[hash, *authority.Foreign]{Changes: p.Changes},
	}
}

// Recent returns the owner of a token that was accepted less than a second ago; nil for others.
func (t *Tokens) Recent(token string) *authority.Foreign {
	if !t.providers.accept() { // a hash less for the tokens of the service
		return nil
	}
	owner, ok := t.recent.Get(sha256.Sum256([]byte(token)), t.ports.Clock.Now())
	if !ok {
		return nil
	}
	return owner
}

// Identify returns the owner of a token. It returns fault.NotFound if no provider makes access tokens for
// this service, fault.Unauthenticated, with the codes of access.Checker.Check, for a token that is
// refused or of a person who may not sign in, and fault.Unavailable if the database or the provider is
// away.
func (t *Tokens) Identify(ctx context.Context, token string) (*authority.Foreign, error) {
	key := sha256.Sum256([]byte(token))
	list, err := t.providers.current(ctx, t.ports)
	if err != nil {
		return nil, err
	}
	if !list.accept {
		return nil, errOther()
	}
	now := t.ports.Clock.Now()
	claims, ok := t.verified.get(key, now)
	if !ok || !claims.isOf(list.all) {
		if claims, err = t.verify(ctx, list.all, token, now); err != nil {
			return nil, errToken(err)
		}
		t.verified.put(key, claims, len(token), now)
	}
	return t.keepOwner(ctx, key, list.read, claims)
}

// keepOwner returns who has a token, as it is stored since a time.
func (t *Tokens) keepOwner(ctx context.Context, key hash, since time.Time, c claims) (*authority.Foreign, error) {
	return t.recent.Keep(key, since, func() (*authority.Foreign, error) {
		owner, err := t.ownerOf(ctx, c)
		return owner, errToken(err)
	})
}

// IdentifyVerified returns the owner of a token whose signature was verified by somebody whom the
// service trusts, from its payload. The token must be of an issuer that is a provider's. The errors are
// those of Identify.
func (t *Tokens) IdentifyVerified(ctx context.Context, payload []byte) (*authority.Foreign, error) {
	key := sha256.Sum256(append([]byte("verified "), payload...))
	if owner, ok := t.recent.Get(key, t.ports.Clock.Now()); ok {
		return owner, nil
	}
	list, err := t.providers.current(ctx, t.ports)
	if err != nil {
		return nil, err
	}
	p, c, err := company.FindVerified(list.all, payload, t.ports.Clock.Now())
	if err != nil {
		return nil, errToken(err)
	}
	return t.keepOwner(ctx, key, list.read, newClaims(p, &c, time.Time{}))
}

// verify checks a token. What a refusal needs no keys for is checked first, so that a wrong token causes
// no request to its issuer.
func (t *Tokens) verify(ctx context.Context, all []company.Provider, token string, now time.Time) (claims, error) {
	payload, err := t.ports.Verifier.ReadAccess(token)
	if err != nil {
		return claims{}, err
	}
	p, c, err := company.FindForAccess(all, payload, now)
	if err != nil {
		return claims{}, err
	}
	if err := t.ports.Verifier.VerifyAccess(ctx, p, token); err != nil {
		return claims{}, err
	}
	return newClaims(p, &c, now), nil
}

// ownerOf returns who has a token: the person to whom the identity is linked, if that person may sign
// in, or somebody whom the service does not know.
func (t *Tokens) ownerOf(ctx context.Context, c claims) (*authority.Foreign, error) {
	owner := &authority.Foreign{Issuer: c.provider.Issuer, Subject: c.subject, Reads: c.reads}
	groups := c.groups
	linked, err := t.ports.Identities.Find(ctx, c.provider.Issuer, c.subject)
	switch {
	case err == nil:
		if err := t.checkPerson(ctx, &linked); err != nil {
			return nil, err
		}
		owner.Holder = string(linked.UserID)
		if !c.namesGroups && linked.Membership.Provider == c.provider.Name {
			groups = linked.Membership.Groups
		}
	case !fault.Is(err, fault.NotFound):
		return nil, err
	}
	if !c.provider.Admits(groups) {
		return nil, company.Reject("group", "the token is of a person in none of the required groups")
	}
	for _, g := range groups {
		owner.Groups = append(owner.Groups, c.provider.Name.Group(g))
	}
	return owner, nil
}

// checkPerson returns an error unless the person of an identity may sign in (contract A-74).
func (t *Tokens) checkPerson(ctx context.Context, linked *company.Identity) error {
	account, err := t.ports.Accounts.Get(ctx, linked.UserID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	if err != nil || account.State != auth.AccountActive || linked.ConfirmedAt.IsZero() {
		return company.Reject("person", "the token is of a person who may not sign in")
	}
	return nil
}

func errOther() error { return fault.New(fault.NotFound, "the token is of another issuer") }

// errToken returns the error of a token as callers get it.
func errToken(err error) error {
	f, ok := fault.As(err)
	if !ok || f.Kind != fault.Unauthenticated {
		return err
	}
	if f.Code == "expired" {
		return fault.New(fault.Unauthenticated, f.Message).WithCode(auth.CodeTokenExpired)
	}
	return fault.New(fault.Unauthenticated, f.Message).WithCode(auth.CodeInvalidToken)
}

const (
	maxVerified = 5 * time.Minute // how long a token counts as verified
	maxSize     = 8 << 20         // bytes of the tokens of one generation of those
)

// claims are what a verified token says, as a provider is configured. They never change.
type claims struct {
	provider           company.Provider // at the time of the verification
	subject            string
	groups             []string
	namesGroups, reads bool
	until              time.Time // they count as verified
}

func newClaims(p *company.Provider, c *company.Claims, now time.Time) claims {
	until := now.Add(maxVerified)
	if ends := c.ExpiresAt(); ends.Before(until) {
		until = ends
	}
	return claims{
		provider: *p, subject: c.Subject, groups: p.MembershipOf(c).Groups, namesGroups: c.NamesGroups(),
		reads: c.HasScope(p, string(authority.ReadScope)), until: until,
	}
}

// isOf reports whether the provider is still one of all, and says the same about tokens.
func (c *claims) isOf(all []company.Provider) bool {
	p, q := company.Named(all, string(c.provider.Name)), &c.provider
	return p != nil && p.Issuer == q.Issuer && p.GroupsClaim == q.GroupsClaim && p.ScopeClaim == q.ScopeClaim &&
		slices.Equal(p.Audiences, q.Audiences) && slices.Equal(p.RequiredGroups, q.RequiredGroups)
}

// verified keeps the claims of tokens by their hashes, for at most maxVerified. Its zero value is ready to
// use.
type verified struct{ kept recent.Memory[hash, claims] }

func (v *verified) get(key hash, now time.Time) (claims, bool) {
	c, ok := v.kept.Get(key)
	left := c.until.Sub(now)
	return c, ok && left > 0 && left <= maxVerified // not of a clock that was set back
}

func (v *verified) put(key hash, c claims, size int, now time.Time) {
	v.kept.Put(key, c, size, now, recent.Bounds{Size: maxSize, Age: maxVerified})
}

// providers keeps the providers for at most sessioncache.MaxAge. One caller reads them, and the others
// wait for it.
type providers struct {
	known   atomic.Pointer[providerList]
	reading chan struct{} // has a value while a caller reads
}

// providerList is the providers as they were stored. It never changes.
type providerList struct {
	all    []company.Provider
	accept bool      // one of them has audiences
	read   time.Time // when the read began
}

// accept reports whether access tokens of a provider were accepted when the providers were read last.
func (p *providers) accept() bool {
	k := p.known.Load()
	return k != nil && k.accept
}

func (p *providers) current(ctx context.Context, from Ports) (*providerList, error) {
	if k := p.fresh(from.Clock.Now()); k != nil {
		return k, nil
	}
	select {
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if k := p.fresh(from.Clock.Now()); k != nil { // another caller has read it
		return k, nil
	}
	next := &providerList{read: from.Clock.Now()}
	var err error
	if next.all, err = from.Providers.List(ctx); err != nil {
		return nil, err
	}
	next.accept = slices.ContainsFunc(next.all, func(p company.Provider) bool { return len(p.Audiences) > 0 })
	p.known.Store(next)
	return next, nil
}

// fresh returns the providers unless they are too old.
func (p *providers) fresh(now time.Time) *providerList {
	k := p.known.Load()
	if k == nil {
		return nil
	}
	if age := now.Sub(k.read); age < 0 || age > sessioncache.MaxAge {
		return nil
	}
	return k
}
