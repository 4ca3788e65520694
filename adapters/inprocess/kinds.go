package inprocess

import (
	"github.com/tollgate-dev/tollgate/core/access/ruling"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/ports/management"
)

// NewKinds returns the objects that operators manage, of all kinds that are described.
func NewKinds(
	p *federating.Providers, r *ruling.Operator, v *viewing.Operator, m *mirroring.Operator, s *delegating.Services,
) management.Kinds {
	return management.NewKinds(p.Objects(), r.Objects(), v.Objects(), m.Objects(), s.Objects())
}
