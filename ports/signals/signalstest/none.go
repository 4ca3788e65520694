package signalstest

import (
	"context"
	"net/netip"

	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// None implements [signals.Geography] and [signals.Reputation] without any data.
type None struct{}

// Locate returns a location that is not configured.
func (None) Locate(context.Context, netip.Addr) risk.Location { return risk.Location{} }

// Rate returns a reputation that is not configured.
func (None) Rate(context.Context, netip.Addr) risk.Reputation { return risk.Reputation{} }
