package quarantining

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/refusal"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// The names of actions in the audit log (contract C-23).
const (
	actAdd     = "quarantine"
	actRelease = "release"
)

// PersonPorts are the dependencies of a Service. All fields are required.
type PersonPorts struct {
	Operator  *Operator
	Grants    registrystore.Grants
	Authority authority.Authority
	Cursors   *page.Sealer // with a key that all instances share
}

// Service lets people who may review put servers in quarantine, list them and release them. It is
// safe for concurrent use.
type Service struct{ ports PersonPorts }

// New returns a service.
func New(p PersonPorts) *Service { return &Service{p} }

// Request is the caller of a use case.
type Request struct {
	Token   string     // the access token as it was sent; empty without one
	Address netip.Addr // of the client
}

// Draft is what a caller puts in quarantine, and why; not validated.
type Draft struct {
	Target
	Reason string
}

// Add puts a server, or one version, in quarantine. read returns the draft that the caller sent; it
// is called when the caller is known.
//
// Errors, in the order of the checks: fault.Unauthenticated, the error of read, fault.Forbidden for a
// caller who may not review the name, below FULL_TRUST, or with the token of a publisher,
// fault.Invalid with the name of the field, fault.NotFound, fault.Conflict when it is in quarantine
// already. fault.Unavailable when the database fails. All but the first are recorded.
func (s *Service) Add(ctx context.Context, r Request, read func() (Draft, error)) (registry.Quarantined, error) {
	act, err := s.identify(ctx, r, authority.Act{Action: actAdd})
	if err != nil {
		return registry.Quarantined{}, err
	}
	added, err := s.add(ctx, read, &act)
	return added, refusal.Record(ctx, s.ports.Authority, act, err)
}

// add puts what read returns in quarantine, and adds it to act.
func (s *Service) add(ctx context.Context, read func() (Draft, error), act *authority.Act) (registry.Quarantined, error) {
	d, err := read()
	if err != nil {
		return registry.Quarantined{}, err
	}
	act.ServerName, act.Version = registry.Clip(d.ServerName), registry.Clip(d.Version)
	if err := s.requireReviewer(ctx, act.Caller, d.ServerName); err != nil {
		return registry.Quarantined{}, err
	}
	reason, err := registry.ParseReason(d.Reason)
	if err != nil {
		return registry.Quarantined{}, err
	}
	q := registry.Quarantined{Reason: reason, By: registry.Holder(act.Caller.UserID)}
	return s.ports.Operator.add(ctx, d.Target, q, func(ctx context.Context, q registry.Quarantined) error {
		done := *act
		done.Note = string(q.Reason)
		return s.ports.Authority.Record(ctx, done)
	})
}

// Release releases a server, or one version. read returns the target that the caller sent; it is
// called when the caller is known. The errors are those of Add without fault.Conflict for what is in
// quarantine already; fault.NotFound when it is not in quarantine, fault.Forbidden when the caller has
// published it, also through an own policy, fault.Conflict when another server now has one of the
// remote URLs.
func (s *Service) Release(ctx context.Context, r Request, read func() (Target, error)) error {
	act, err := s.identify(ctx, r, authority.Act{Action: actRelease})
	if err != nil {
		return err
	}
	return refusal.Record(ctx, s.ports.Authority, act, s.release(ctx, read, &act))
}

// release releases what read returns, and adds it to act.
func (s *Service) release(ctx context.Context, read func() (Target, error), act *authority.Act) error {
	t, err := read()
	if err != nil {
		return err
	}
	act.ServerName, act.Version = registry.Clip(t.ServerName), registry.Clip(t.Version)
	if err := s.requireReviewer(ctx, act.Caller, t.ServerName); err != nil {
		return err
	}
	return s.ports.Operator.release(ctx, t, registry.Holder(act.Caller.UserID), func(ctx context.Context) error { return s.ports.Authority.Record(ctx, *act) })
}

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

// List returns a page of what is in quarantine among the names that the caller may review, ordered
// by name, then version, both bytewise. It returns fault.Unauthenticated, fault.Forbidden for a
// caller who may review nothing, has the token of a publisher or is below UNVERIFIED, fault.Invalid
// with the name of the parameter, fault.Unavailable when the database fails.
func (s *Service) List(ctx context.Context, r Request, q Query) (Page, error) {
	act, err := s.identify(ctx, r, authority.Act{})
	if err != nil {
		return Page{}, err
	}
	patterns, err := s.reviewPatterns(ctx, act.Caller)
	if err != nil {
		return Page{}, err
	}
	if len(patterns) == 0 {
		return Page{}, fault.New(fault.Forbidden, "you have no review permission on this registry")
	}
	if err := s.ports.Authority.RequireVerified(ctx, act.Caller); err != nil {
		return Page{}, err
	}
	limit, err := browsing.ParseLimit(q.Limit)
	if err != nil {
		return Page{}, err
	}
	name, version, err := s.openCursor(q.Cursor)
	if err != nil {
		return Page{}, err
	}
	found, err := s.find(ctx, patterns, registrystore.QuarantineQuery{AfterName: name, AfterVersion: version, Limit: limit + 1})
	if err != nil || len(found) <= limit {
		return Page{Entries: found}, err
	}
	last := found[limit-1]
	return Page{found[:limit], s.sealCursor(last)}, nil
}

// find returns the entries that a query selects with one of the patterns, of which there may be more
// than one query may have. They are disjoint and in the order of the names.
func (s *Service) find(ctx context.Context, patterns []registry.Pattern, q registrystore.QuarantineQuery) (all []registry.Quarantined, err error) {
	limit := q.Limit
	for part := range slices.Chunk(patterns, registrystore.MaxQuarantinePatterns) {
		q.Patterns, q.Limit = part, limit-len(all)
		found, err := s.ports.Operator.ports.Quarantine.List(ctx, q)
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

// identify returns the act with the caller of a request.
func (s *Service) identify(ctx context.Context, r Request, act authority.Act) (authority.Act, error) {
	caller, err := s.ports.Authority.Identify(ctx, r.Token)
	act.Caller = caller
	act.Caller.Address = r.Address
	return act, err
}

// requireReviewer returns fault.Forbidden unless the caller is a person at FULL_TRUST with a grant to
// review the name. For a name that no server can have, a grant for any pattern is enough, so that
// the caller gets the error of the name.
func (s *Service) requireReviewer(ctx context.Context, c authority.Caller, serverName string) error {
	patterns, err := s.reviewPatterns(ctx, c)
	if err != nil {
		return err
	}
	name, bad := registry.ParseName(serverName)
	granted := slices.ContainsFunc(patterns, func(p registry.Pattern) bool { return bad != nil || p.Matches(name) })
	switch {
	case granted:
		return s.ports.Authority.RequireFullTrust(ctx, c)
	case bad != nil:
		return fault.New(fault.Forbidden, "you have no review permission on this registry")
	}
	return fault.Newf(fault.Forbidden, "you have no review permission for %s", name)
}

// reviewPatterns returns the patterns of the names that the caller may review: in the order of the
// names, without those that another one covers. It returns fault.Forbidden for the token of a
// publisher.
func (s *Service) reviewPatterns(ctx context.Context, c authority.Caller) ([]registry.Pattern, error) {
	if c.Publisher != nil {
		return nil, fault.New(fault.Forbidden, "the token of a publisher may only publish and change status: sign in as a person")
	}
	patterns, err := reviewing.ReviewPatterns(ctx, s.ports.Grants, registry.Holder(c.UserID))
	return registry.DisjointPatterns(patterns), err
}
