package access

import (
	"context"
	"strings"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// IssuedPorts are what the tokens of the authorization server depend on. All fields are required.
type IssuedPorts struct {
	Issuer    string                    // of the tokens, which this registry is as a resource
	AllListed bool                      // every https remote of a listed version is a resource
	Admits    func(oauth.ClientID) bool // whether the settings admit a client by document
	Families  authorization.Families
	Clients   management.Store[oauth.ClientID, oauth.Client]
	Resources management.Store[oauth.ResourceName, oauth.Resource]
	Accounts  authstore.Accounts
	Clock     clock.Clock
	Changes   authstore.Changes
}

// Issued checks what the tokens of the authorization server came of, from copies that are at most
// sessioncache.MaxAge old, and not older than a change by this process. It is safe for concurrent use.
type Issued struct {
	ports     IssuedPorts
	families  Recent[oauth.FamilyID, oauth.Family]
	clients   Recent[oauth.ClientID, oauth.Client]
	resources Recent[struct{}, map[string]oauth.Resource] // by canonical URL
	accounts  Recent[auth.UserID, auth.Account]
}

// NewIssued returns what checks them.
func NewIssued(p IssuedPorts) *Issued {
	i := &Issued{ports: p}
	i.families.Changes, i.clients.Changes = p.Changes, p.Changes
	i.resources.Changes, i.accounts.Changes = p.Changes, p.Changes
	return i
}

// Grant is what a token of the authorization server came of.
type Grant struct {
	oauth.Claims

	Of oauth.Family
	// Resource is for which tool servers the token is; nil for this registry.
	Resource *oauth.Resource
}

// identifyGranted returns to whom a token of the authorization server belongs, if all that it came of is
// still there.
func (c *Checker) identifyGranted(ctx context.Context, claims *secrets.TokenClaims) (Identity, error) {
	if c.issued == nil {
		return Identity{}, errEnded()
	}
	grant, err := c.issued.check(ctx, claims)
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			err = errEnded()
		}
		return Identity{}, err
	}
	identity := Identity{Granted: grant}
	if claims.SessionID != "" {
		identity.Session, err = c.CheckSession(ctx, claims.SessionID)
		if err == nil && identity.Session.UserID != claims.UserID {
			err = errEnded()
		}
	} else {
		err = c.issued.checkAccount(ctx, claims.UserID)
	}
	if err != nil {
		return Identity{}, err
	}
	return identity, nil
}

// check returns what a token came of. It returns fault.NotFound if a part of that is gone.
func (i *Issued) check(ctx context.Context, claims *secrets.TokenClaims) (*Grant, error) {
	now, grant := i.ports.Clock.Now(), &Grant{Claims: *claims.Granted}
	var err error
	grant.Of, err = i.families.Of(grant.Family, now, func() (oauth.Family, error) {
		return i.ports.Families.Get(ctx, grant.Family)
	})
	if err != nil {
		return nil, err
	}
	f := &grant.Of
	if !f.Active(now) || f.UserID != claims.UserID || f.SessionID != claims.SessionID || f.Client != grant.Client {
		return nil, errEnded()
	}
	if grant.Resource, err = i.FindResource(ctx, grant.Claims.Resource); err != nil {
		return nil, err
	}
	client := oauth.Client{ID: grant.Client}
	switch {
	case client.ID.IsURL() && !i.ports.Admits(client.ID):
		err = errEnded()
	case !client.ID.IsURL():
		client, err = i.clients.Of(client.ID, now, func() (oauth.Client, error) {
			return i.ports.Clients.Get(ctx, grant.Client)
		})
	}
	if err == nil && grant.Resource != nil && !grant.Resource.Admits(&client) {
		err = errEnded()
	}
	return grant, err
}

// checkAccount returns an error unless a person may sign in.
func (i *Issued) checkAccount(ctx context.Context, user auth.UserID) error {
	account, err := i.accounts.Of(user, i.ports.Clock.Now(), func() (auth.Account, error) {
		return i.ports.Accounts.Get(ctx, user)
	})
	if fault.Is(err, fault.NotFound) || err == nil && account.State != auth.AccountActive {
		return errEnded()
	}
	return err
}

// FindResource returns the resource with a URL in any spelling; nil for this registry. It returns
// fault.NotFound without one.
func (i *Issued) FindResource(ctx context.Context, text string) (*oauth.Resource, error) {
	url, ok := oauth.CanonicalURL(text)
	if own, _ := oauth.CanonicalURL(i.ports.Issuer); ok && url == own {
		return nil, nil //nolint:nilnil // it is this registry
	}
	declared, err := i.resources.Of(struct{}{}, i.ports.Clock.Now(), func() (map[string]oauth.Resource, error) {
		return i.readResources(ctx)
	})
	if err != nil {
		return nil, err
	}
	found, is := declared[url]
	if !is && ok && i.ports.AllListed && strings.HasPrefix(url, "https://") {
		found, is = oauth.Undeclared(url), true
	}
	if !is {
		return nil, fault.New(fault.NotFound, "there is no such resource")
	}
	return &found, nil
}

// resourcesAtOnce is how many resources are read at once.
const resourcesAtOnce = 1000

func (i *Issued) readResources(ctx context.Context) (map[string]oauth.Resource, error) {
	all := map[string]oauth.Resource{}
	for after := oauth.ResourceName(""); ; {
		page, err := i.ports.Resources.List(ctx, after, resourcesAtOnce)
		if err != nil {
			return nil, err
		}
		for _, one := range page {
			if url, ok := oauth.CanonicalURL(one.URL); ok {
				all[url] = one
			}
			after = one.Name
		}
		if len(page) < resourcesAtOnce {
			return all, nil
		}
	}
}
