package counter

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Admitted is what a store says about a hit of Admit.
type Admitted struct {
	// Count is the count after the hit of a fixed window, as Add writes it.
	Count uint64
	// Verdict is that about a hit of another algorithm. A hit with an Addend of 0 is always admitted.
	Verdict ratelimit.Verdict
}

// Admitter counts hits of all algorithms: those of fixed windows as Store does, and of sliding windows
// and token buckets only those that it admits. Each hit is decided in one atomic step, by the clock of
// the store if it has one. It is safe for concurrent use from many processes, and keeps neither hits nor
// results when a call has returned.
type Admitter interface {
	// Admit decides about the hits in order, each by itself, and writes what came out to results, which
	// has the length of hits. It returns fault.Unavailable as Add does.
	Admit(ctx context.Context, hits []Hit, results []Admitted) error
	// AdmitAll is like Admit, except that if any hit is refused or would take a fixed window over its
	// limit, only those fixed windows are counted; the results of the others are as if their hits had an
	// Addend of 0 (contract L-10). It is atomic where AddUnlessOver is.
	AdmitAll(ctx context.Context, hits []Hit, results []Admitted) error
}
