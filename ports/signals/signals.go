// Package signals is the port to what is known of an address: where it is and what reputation it has. What follows from it is
// scored in core/auth/risk.
package signals

import (
	"context"
	"net/netip"

	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// Geography tells where addresses are. It is safe for concurrent use and answers from memory.
type Geography interface {
	// Locate returns where an address is: risk.NotConfigured where there is no data at all, risk.Unanswered where the data does
	// not know the address or cannot be read.
	Locate(ctx context.Context, address netip.Addr) risk.Location
}

// Reputation tells how addresses are spoken of. It is safe for concurrent use and answers from memory.
type Reputation interface {
	// Rate returns the worst class that an address has in any list, risk.Clean when it is in none; risk.NotConfigured where there
	// are no lists, risk.Unanswered where they cannot be read.
	Rate(ctx context.Context, address netip.Addr) risk.Reputation
}

// None answers both ports where nothing is configured.
type None struct{}

// Locate returns a location that is not configured.
func (None) Locate(context.Context, netip.Addr) risk.Location { return risk.Location{} }

// Rate returns a reputation that is not configured.
func (None) Rate(context.Context, netip.Addr) risk.Reputation { return risk.Reputation{} }
