// Package rulesource is the port to where the rules of the rate limit service
// come from: a directory of files, or a management server. It delivers
// configuration as written; whether it holds together the core decides.
package rulesource

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Source delivers configuration.
type Source interface {
	// Load returns the whole present configuration. What is wrong with the form
	// of a part of it stands in that part's Faults, also a part that cannot be
	// read; so all faults can be told at once.
	//
	// Errors: fault.NotFound while there is no configuration at all, which is
	// not the same as an empty one. Safe for concurrent use.
	Load(ctx context.Context) ([]ruleset.Source, error)
	// Watch calls apply with the whole configuration, first with the present
	// one if there is one, then after each change, never twice at once. When
	// apply returns an error the configuration was refused and the one before
	// stays in force; watching goes on.
	//
	// Watch returns when ctx is done, with nil, or when it cannot watch any
	// more, with the reason.
	Watch(ctx context.Context, apply func([]ruleset.Source) error) error
}
