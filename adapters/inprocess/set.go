package inprocess

import (
	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/ports/authority"
)

// RecorderSet provides what records the changes of operators in the audit log.
var RecorderSet = wire.NewSet(
	NewGrants, wire.Bind(new(authority.Grants), new(*Grants)),
	NewMethods, wire.Bind(new(authority.Methods), new(*Methods)),
	NewImports, wire.Bind(new(authority.Imports), new(*Imports)),
)

// AuthoritySet provides the authority of the registry.
var AuthoritySet = wire.NewSet(NewAuthority, wire.Bind(new(authority.Authority), new(*Authority)))
