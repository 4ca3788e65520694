package eventlog

import (
	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
)

// RulesSet provides the reporter of loaded rate limit configurations.
var RulesSet = wire.NewSet(NewRules, wire.Bind(new(reload.Reporter), new(*Rules)))
