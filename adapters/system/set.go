package system

import (
	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Set provides the system's clock and randomness.
var Set = wire.NewSet(
	wire.InterfaceValue(new(clock.Clock), Clock{}), wire.InterfaceValue(new(clock.Waiter), Clock{}),
	wire.InterfaceValue(new(secrets.Entropy), Entropy{}),
)
