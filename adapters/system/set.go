package system

import (
	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Set provides the system's clock and randomness.
var Set = wire.NewSet(
	wire.Struct(new(Clock)), wire.Bind(new(clock.Clock), new(Clock)), wire.Bind(new(clock.Waiter), new(Clock)),
	wire.Struct(new(Entropy)), wire.Bind(new(secrets.Entropy), new(Entropy)),
)
