package inprocess

import (
	"github.com/tollgate-dev/tollgate/core/access/ruling"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/registering"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/core/registry/watching"
	"github.com/tollgate-dev/tollgate/ports/management"
)

// NewKinds returns the objects that operators manage, of all kinds that are described. Those of the
// authorization server are there if it is on.
func NewKinds( //nolint:revive // the use cases, which wiring gives
	p *federating.Providers, r *ruling.Operator, v *viewing.Operator, m *mirroring.Operator, s *delegating.Services,
	c *registering.Clients, t *registering.Resources, w *watching.Sources, l *viewing.Collections, server authorizing.Config,
) management.Kinds {
	all := []management.Objects{p.Objects(), r.Objects(), v.Objects(), m.Objects(), s.Objects(), w.Objects(), l.Objects()}
	if server.On {
		all = append(all, c.Objects(), t.Objects())
	}
	return management.NewKinds(all...)
}
