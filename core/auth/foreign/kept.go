package foreign

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/recent"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
)

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
