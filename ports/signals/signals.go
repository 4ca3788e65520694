// Package signals is the port to what is known about an address: its location and its reputation.
// Package core/auth/risk scores them.
package signals

import (
	"context"
	"net/netip"

	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// Geography locates addresses. It is safe for concurrent use, and answers from memory.
type Geography interface {
	// Locate returns the location of an address. Its state is risk.NotConfigured if there is no
	// data source, and risk.Unanswered if the source does not have the address or cannot be read.
	Locate(ctx context.Context, address netip.Addr) risk.Location
}

// Reputation rates addresses by lists. It is safe for concurrent use, and answers from memory.
type Reputation interface {
	// Rate returns the worst class that an address has in any list, or risk.Clean if no list
	// contains it. Its state is risk.NotConfigured if there are no lists, and risk.Unanswered if
	// they cannot be read.
	Rate(ctx context.Context, address netip.Addr) risk.Reputation
}
