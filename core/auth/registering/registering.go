// Package registering has the use cases of what operators register for the authorization server: clients
// and resources, which they list, store and remove as objects of any kind (package managing). What they
// mean is in package oauth.
package registering

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Ports are the dependencies of Clients and Resources. All fields but Gate are required.
type Ports struct {
	Transactions transaction.Runner
	Clients      management.Store[oauth.ClientID, oauth.Client]
	Resources    management.Store[oauth.ResourceName, oauth.Resource]
	Families     authorization.Families
	Consents     authorization.Consents
	Recorder     authority.Recorder
	Clock        clock.Clock
	Entropy      secrets.Entropy
	Gate         authorization.Gate // says whether resources are open; nil where that does not matter
}

// Clients lists, stores and removes clients for operators.
type Clients = managing.Operator[oauth.ClientID, oauth.Client]

// Resources lists, stores and removes resources for operators.
type Resources = managing.Operator[oauth.ResourceName, oauth.Resource]

// NewClients returns Clients. A client whose method has a secret gets one when it is stored by hand: who
// applies a file would not see it.
func NewClients(p Ports) *Clients {
	return managing.New(managing.Description[oauth.ClientID, oauth.Client]{
		Kind: &oauth.ClientKind, Parse: oauth.ParseClient, Show: showClient,
		Key:   func(c *oauth.Client) oauth.ClientID { return c.ID },
		Owner: func(c *oauth.Client) *string { return &c.ManagedBy },
		Admit: func(_ context.Context, current, wanted *oauth.Client) error {
			if !wanted.Method.HasSecret() {
				return nil
			}
			if current != nil {
				wanted.SecretHash = current.SecretHash
			}
			if wanted.NewSecret || !wanted.HasSecret() && wanted.ManagedBy == "" {
				wanted.Secret = secrets.NewSecret[auth.ClientSecret](p.Entropy)
				wanted.SecretHash = auth.HashSecret(wanted.Secret)
			}
			return nil
		},
		Removed: func(ctx context.Context, c *oauth.Client) error {
			return p.end(ctx, authorization.FamilyFilter{Client: c.ID})
		},
	}, managing.Ports[oauth.ClientID, oauth.Client]{
		Transactions: p.Transactions, Store: p.Clients, Recorder: p.Recorder,
	})
}

// showClient returns a client with the secret that was just made, if there is one.
func showClient(c *oauth.Client) management.Object {
	made := audit.Details{oauth.ClientSecretFact: nil}
	made.Set(oauth.ClientSecretFact, string(c.Secret))
	return management.Object{
		Object: c.Object(), Owner: c.ManagedBy, State: made, Fixed: audit.Details{"hasSecret": audit.Flag(c.HasSecret())},
	}
}

// NewResources returns Resources. One whose URL another one has is refused with fault.Conflict.
func NewResources(p Ports) *Resources {
	return managing.New(managing.Description[oauth.ResourceName, oauth.Resource]{
		Kind: &oauth.ResourceKind, Parse: oauth.ParseResource,
		Show: func(r *oauth.Resource) management.Object {
			o := audit.Object{Kind: oauth.ResourceKind.Name, Key: string(r.Name), Fields: r.Fields()}
			return management.Object{Object: o, Owner: r.ManagedBy}
		},
		Key:   func(r *oauth.Resource) oauth.ResourceName { return r.Name },
		Owner: func(r *oauth.Resource) *string { return &r.ManagedBy },
		Admit: func(ctx context.Context, _, wanted *oauth.Resource) error {
			all, err := p.Resources.List(ctx, "", oauth.MaxDeclared)
			url, _ := oauth.CanonicalURL(wanted.URL)
			for i := range all {
				if other, _ := oauth.CanonicalURL(all[i].URL); other == url && all[i].Name != wanted.Name {
					return fault.In("url", fault.Newf(fault.Conflict, "url: the resource %s has it already", all[i].Name))
				}
			}
			return err
		},
		Removed: func(ctx context.Context, r *oauth.Resource) error {
			return p.end(ctx, authorization.FamilyFilter{Resource: r.URL})
		},
		State: p.state,
	}, managing.Ports[oauth.ResourceName, oauth.Resource]{
		Transactions: p.Transactions, Store: p.Resources, Recorder: p.Recorder,
	})
}

// end ends what people have granted, so that it does not come back with an object of the same name.
func (p Ports) end(ctx context.Context, which authorization.FamilyFilter) error {
	_, err := p.Families.End(ctx, which, p.Clock.Now(), oauth.EndRemoved)
	if err == nil {
		err = p.Consents.Remove(ctx, which)
	}
	return err
}

// state returns whether a resource is open.
func (p Ports) state(ctx context.Context, r *oauth.Resource) audit.Details {
	if p.Gate == nil {
		return nil
	}
	url, _ := oauth.CanonicalURL(r.URL) // it is stored, and therefore one
	servers, err := p.Gate.Servers(ctx, url, r.Servers)
	state := "open"
	if closed := oauth.Closed(servers); err != nil {
		state = "unknown: the registry cannot be read"
	} else if closed != "" {
		state = "closed: " + closed
	}
	return audit.Details{"state": audit.Text(state)}
}
