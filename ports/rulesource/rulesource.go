// Package rulesource is the port to the source of rate limit rules: a directory of files, or a
// management server. It delivers the configuration as it is written; the core validates it.
package rulesource

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Source delivers configuration.
type Source interface {
	// Load returns the whole current configuration. A part that cannot be read or parsed has its
	// errors in Faults, so that the caller can report all of them together.
	//
	// It returns fault.NotFound while there is no configuration; an empty configuration is not an
	// error. It is safe for concurrent use.
	Load(ctx context.Context) ([]ruleset.Source, error)
	// Expected reports whether a service must wait for a first configuration before it is ready.
	Expected() bool
	// Watch calls apply with the whole configuration: first with the current one, if there is one,
	// then after each change. Calls do not overlap. If apply returns an error, the configuration is
	// refused, the previous one stays in force, and watching continues.
	//
	// Watch returns nil when ctx is done, or an error when it can no longer watch.
	Watch(ctx context.Context, apply func([]ruleset.Source) error) error
}
