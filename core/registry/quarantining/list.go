package quarantining

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// listedAtOnce is how many entries are read at once.
const listedAtOnce = 100

// Query has the parameters of a list, as they were sent; empty ones count as absent.
type Query struct {
	Cursor string
	Limit  string
}

// Page is one page of a list.
type Page struct {
	Entries    []registry.Quarantined
	NextCursor string // empty on the last page
}

// List returns a page of what is in quarantine among the names that a person may review, ordered
// by name, then version, both bytewise. It returns fault.Forbidden for a caller who may review
// nothing, is a publisher or is below UNVERIFIED, fault.Invalid with the name of the parameter,
// fault.Unavailable when the database fails.
func (s *Service) List(ctx context.Context, who authority.Caller, q Query) (Page, error) {
	if err := who.RequireScope(scope.Read); err != nil {
		return Page{}, err
	}
	patterns, err := permit.ReviewPatterns(ctx, s.ports.Grants, who)
	if err != nil {
		return Page{}, err
	}
	if len(patterns) == 0 {
		return Page{}, fault.New(fault.Forbidden, "you have no review permission on this registry")
	}
	if _, err := who.RequireReader(); err != nil {
		return Page{}, err
	}
	limit, err := page.ParseLimit(q.Limit)
	if err != nil {
		return Page{}, err
	}
	name, version, err := s.openCursor(q.Cursor)
	if err != nil {
		return Page{}, err
	}
	found, err := s.find(ctx, patterns, registrystore.QuarantineQuery{
		AfterName: name, AfterVersion: version, Limit: limit + 1,
	})
	if err != nil || len(found) <= limit {
		return Page{Entries: found}, err
	}
	last := found[limit-1]
	return Page{found[:limit], s.sealCursor(last)}, nil
}

// all returns what was put in quarantine after a time.
func (s *Service) all(ctx context.Context, since time.Time) ([]registry.Quarantined, error) {
	patterns, err := permit.Everything()
	if err != nil {
		return nil, err
	}
	q := registrystore.QuarantineQuery{Patterns: patterns, Since: since, Limit: listedAtOnce}
	var all []registry.Quarantined
	for {
		found, err := s.ports.Quarantine.List(ctx, q)
		if err != nil {
			return nil, err
		}
		if all = append(all, found...); len(found) < q.Limit {
			return all, nil
		}
		last := found[len(found)-1]
		q.AfterName, q.AfterVersion = last.Name.String(), last.Version.String()
	}
}

// find returns the entries that a query selects with one of the patterns, of which there may be
// more than one query may have. They are disjoint and in the order of the names.
func (s *Service) find(
	ctx context.Context, patterns []registry.Pattern, q registrystore.QuarantineQuery,
) (all []registry.Quarantined, err error) {
	limit := q.Limit
	for part := range slices.Chunk(patterns, registrystore.MaxQuarantinePatterns) {
		q.Patterns, q.Limit = part, limit-len(all)
		found, err := s.ports.Quarantine.List(ctx, q)
		if err != nil {
			return nil, err
		}
		if all = append(all, found...); len(all) == limit {
			break
		}
	}
	return all, nil
}

// cursorFormat distinguishes the cursors of this list from those of others.
const cursorFormat = "quarantine"

// separator separates the parts of a cursor; no part can contain it.
const separator = "\x00"

func (s *Service) sealCursor(q registry.Quarantined) string {
	return s.ports.Cursors.Seal([]byte(cursorFormat + separator + q.Name.String() + separator + q.Version.String()))
}

// openCursor returns the name and version after which the page of a cursor begins; empty without a
// cursor. It returns fault.Invalid for a cursor of another list.
func (s *Service) openCursor(cursor string) (name, version string, err error) {
	if cursor == "" {
		return "", "", nil
	}
	content, err := s.ports.Cursors.Open(cursor)
	if err != nil {
		return "", "", err
	}
	parts := strings.Split(string(content), separator)
	if len(parts) != 3 || parts[0] != cursorFormat {
		return "", "", page.UnknownCursor()
	}
	return parts[1], parts[2], nil
}
