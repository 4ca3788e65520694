package decide

import (
	"context"
	"errors"
)

// FailureMode is the behaviour when the counter store fails (contract L-29).
type FailureMode uint8

// The failure modes.
const (
	FailError  FailureMode = iota // the call fails
	FailOpen                      // every descriptor is within its limit
	FailClosed                    // every descriptor with a limit is over it
	FailLocal                     // a store in this process counts
)

// CountsOn reports whether the API's own limits are counted in the process while the store fails.
func (m FailureMode) CountsOn() bool { return m == FailLocal || m == FailOpen }

// ParseFailureMode returns the mode with the given name: error, open, closed or local.
func ParseFailureMode(name string) (FailureMode, error) {
	for i, known := range [...]string{"error", "open", "closed", "local"} {
		if name == known {
			return FailureMode(i), nil
		}
	}
	return FailError, errors.New("must be error, open, closed or local")
}

// handleStoreFailure decides the descriptors of a request whose counters could not be counted,
// according to the failure mode (contract L-29). It returns cause in the mode FailError, and the
// error of the local store in the mode FailLocal.
func (d *Decider) handleStoreFailure(ctx context.Context, w *work, cause error) error {
	d.stats.StoreErrors.Add(1)
	switch d.config.FailureMode {
	case FailOpen:
		d.stats.FailedOpen.Add(1)
		w.outcome = allWithin
	case FailClosed:
		d.stats.FailedClosed.Add(1)
		w.outcome = allOver
	case FailLocal:
		d.stats.CountedLocally.Add(1)
		return d.countIn(ctx, d.ports.Local, w)
	default:
		return cause
	}
	return nil
}
