package inprocess

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/auth"
	authaccess "github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// GatePorts are the dependencies of a Gate. All fields are required.
type GatePorts struct {
	Decisions *deciding.Service
	Servers   registrystore.ServerReader
	Reviews   registrystore.Reviews
	Clock     clock.Clock
	Changes   authstore.Changes
}

// Gate knows the tool servers of the registry and the access rules for the authorization server. What
// people read about a server is at most a second old. It implements authorization.Gate.
type Gate struct {
	ports  GatePorts
	recent authaccess.Recent[offered, oauth.Server]
}

// offered is a URL that a server has.
type offered struct {
	name toolserver.Name
	url  string
}

// NewGate returns the gate.
func NewGate(p GatePorts) authorization.Gate {
	return &Gate{p, authaccess.Recent[offered, oauth.Server]{Changes: p.Changes}}
}

// Servers implements [authorization.Gate].
func (g *Gate) Servers(ctx context.Context, url string, named []toolserver.Name) ([]oauth.Server, error) {
	offers, err := g.ports.Decisions.Offers(ctx, access.Resource{URL: url, Servers: named})
	if err != nil {
		return nil, err
	}
	all := make([]oauth.Server, len(offers))
	for i, o := range offers {
		all[i], err = g.recent.Of(offered{o.Server, url}, g.ports.Clock.Now(), func() (oauth.Server, error) {
			return g.describe(ctx, o.Server, url)
		})
		if err != nil {
			return nil, err
		}
		all[i].Listed, all[i].Quarantined = o.Listed, o.Quarantined
	}
	return all, nil
}

// The newest versions of a server, and the newest reviews, among which that with a URL is looked for.
const (
	searchedVersions = 100
	searchedBytes    = 4 << 20
)

// describe returns what people read about a server: of the newest version that has a URL.
func (g *Gate) describe(ctx context.Context, name toolserver.Name, url string) (oauth.Server, error) {
	s := oauth.Server{Name: name, Publisher: name.Namespace()}
	page, err := g.ports.Servers.Versions(ctx, registrystore.VersionsQuery{Name: name, Limit: searchedVersions, Bytes: searchedBytes})
	if err != nil {
		return s, err
	}
	i := slices.IndexFunc(page.Records, func(r registry.Record) bool {
		return slices.ContainsFunc(registry.RemotesOf(r.Document), func(remote registry.RemoteURL) bool {
			canonical, ok := toolserver.CanonicalURL(string(remote))
			if !ok || canonical != url {
				return false
			}
			s.URL = string(remote)
			return true
		})
	})
	if i < 0 {
		return s, nil
	}
	s.Title = registry.SummaryOf(page.Records[i]).Title
	reviews, err := g.ports.Reviews.List(ctx, registrystore.ReviewQuery{
		Name: name, State: review.Approved, Newest: true, Limit: searchedVersions, Brief: true,
	})
	s.Reviewed = slices.ContainsFunc(reviews.Reviews, func(r review.Review) bool {
		return r.Version == page.Records[i].Version && r.DecidedBy != ""
	})
	return s, err
}

// Permits implements [authorization.Gate].
func (g *Gate) Permits(ctx context.Context, q authorization.Question) (auth.TrustLevel, bool, error) {
	return g.ports.Decisions.Permits(ctx, deciding.Prospect{
		Holder: string(q.UserID), Groups: q.Groups, Client: string(q.Client), Server: q.Server, From: q.From,
	})
}
