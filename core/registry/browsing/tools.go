package browsing

import (
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// ToolsPorts are the dependencies of Tools. All fields are required.
type ToolsPorts struct {
	Lists   registrystore.ToolLists
	Watches registrystore.ToolWatches
	Grants  registrystore.Grants
}

// Tools reads tool lists. It is safe for concurrent use.
type Tools struct{ ports ToolsPorts }

// NewTools returns a reader of tool lists.
func NewTools(p ToolsPorts) *Tools { return &Tools{p} }

// Of returns the tool lists of a version, which the caller has read (Browser.Version), so that they are
// as readable as the version, and the problems of its remotes. It returns fault.Unavailable when the database
// is not available.
func (t *Tools) Of(ctx context.Context, version registry.Record) ([]tools.Shown, error) {
	lists, _, err := t.Checked(ctx, version)
	return lists, err
}

// LastCheck is when the remotes of a server were asked for their tools, and how many of them did not answer.
type LastCheck struct {
	At            time.Time // zero if none was asked
	Asked, Silent int       // remotes
}

// Checked returns what Of does, and when the remotes of the server were asked last.
func (t *Tools) Checked(ctx context.Context, version registry.Record) (lists []tools.Shown, c LastCheck, err error) {
	stored, err := t.ports.Lists.OfVersion(ctx, version.Name, version.Version)
	if err != nil {
		return nil, c, err
	}
	watches, err := t.ports.Watches.Of(ctx, version.Name)
	for _, w := range watches {
		if w.AskedAt.IsZero() {
			continue
		}
		if c.Asked++; w.AskedAt.After(c.At) {
			c.At = w.AskedAt
		}
		if w.Problem != "" {
			c.Silent++
		}
	}
	return tools.AddProblems(version.Document, tools.Show(version.Document, stored), watches), c, err
}

// MayReview reports whether a caller may know what is wrong with the remotes of a server: who may review
// it, or operate. It returns fault.Unavailable when the database is not available.
func (t *Tools) MayReview(ctx context.Context, who authority.Caller, serverName string) (bool, error) {
	holder, err := who.Person()
	name, bad := registry.ParseName(serverName)
	if err != nil || bad != nil {
		return false, nil //nolint:nilerr // who may not
	}
	grants, err := t.ports.Grants.Of(ctx, holder)
	return slices.ContainsFunc(grants, func(g registry.Grant) bool {
		return who.Allows(g.Action) && (g.Action == registry.ActionOperate || g.Action == registry.ActionReview && g.Pattern.Matches(name))
	}), err
}
