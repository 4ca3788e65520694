package inprocess

import (
	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/ports/authority"
)

// RecorderSet provides the recorder of operators' changes.
var RecorderSet = wire.NewSet(NewRecorder, wire.Bind(new(authority.Recorder), new(*Recorder)))

// AuthoritySet provides the authority of the registry.
var AuthoritySet = wire.NewSet(NewAuthority, wire.Bind(new(authority.Authority), new(*Authority)))
