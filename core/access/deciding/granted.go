package deciding

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/recent"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// Resources returns the resource of the authorization server with a URL, or fault.NotFound.
type Resources func(ctx context.Context, url string) (access.Resource, error)

// grantedSubject returns the person for whom an application calls.
func (s *Service) grantedSubject(ctx context.Context, who authority.Caller) (access.Subject, error) {
	g := who.Granted()
	if g.Resource == nil { // it is for this registry, which is no tool server
		return access.Refused(), nil
	}
	subject, err := s.prospect(ctx, string(g.UserID), g.Groups)
	return subject.WithTrust(trustOf(who)).WithClient(g.Client).Within(*g.Resource), err
}

// prospect returns a person, in other groups unless these are nil.
func (s *Service) prospect(ctx context.Context, holder string, groups []string) (access.Subject, error) {
	subject, err := s.member(ctx, holder, 0)
	if groups != nil {
		subject = subject.WithGroups(groupsOf(groups))
	}
	return subject, err
}

// groupsOf returns groups of texts PROVIDER/GROUP.
func groupsOf(texts []string) []access.Group {
	all := make([]access.Group, len(texts))
	for i, text := range texts {
		all[i].Provider, all[i].Name, _ = strings.Cut(text, "/")
	}
	return all
}

// Offers returns the servers of a resource as they are now. The errors are those of Decide.
func (s *Service) Offers(ctx context.Context, r access.Resource) ([]access.Offer, error) {
	snapshot, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Collect(snapshot.Offers(&r)), nil
}

// Prospect is an application that could call a server for a person.
type Prospect struct {
	Holder string
	Groups []string // PROVIDER/GROUP, in place of those of the person; nil for those
	Client string
	Server toolserver.Name
	From   netip.Addr
}

// Permits reports whether some call could be allowed, and from which trust level on, as
// access.Snapshot.Permits does. The errors are those of Decide.
func (s *Service) Permits(ctx context.Context, p Prospect) (least trustlevel.Level, ok bool, err error) {
	snapshot, err := s.snapshot(ctx)
	if err != nil {
		return 0, false, err
	}
	subject, err := s.prospect(ctx, p.Holder, p.Groups)
	if err != nil {
		return 0, false, err
	}
	subject = subject.WithClient(p.Client)
	least, ok = snapshot.Permits(&subject, p.Server, p.From, s.ports.Clock.Now())
	return least, ok, nil
}

// granted returns the subject that somebody names as it calls by a token of the authorization server, if
// they name its client or its resource.
func (s *Service) granted(ctx context.Context, who Who, subject access.Subject) (access.Subject, error) {
	subject = subject.WithClient(who.Client)
	if who.Resource == "" {
		return subject, nil
	}
	r, err := s.ports.Resources(ctx, who.Resource)
	if fault.Is(err, fault.NotFound) {
		err = fault.In("resource", fault.Violated("resource: %s", fault.PublicMessage(err)))
	}
	return subject.Within(r), err
}

// foreignSubject returns the owner of an access token of a company provider: the person to whom the
// identity is linked, or a stranger in the groups of the token.
func (s *Service) foreignSubject(ctx context.Context, f *authority.Foreign) (access.Subject, error) {
	if f.Holder != "" {
		return s.member(ctx, f.Holder, trustlevel.Unverified)
	}
	return s.foreigners.subjectOf(f), nil
}

// maxForeigners is how many subjects one generation of foreigners has.
const maxForeigners = 1 << 12

// foreigners keeps the subjects of foreign tokens, which may be in thousands of groups. Its zero value is
// ready to use.
type foreigners struct {
	kept recent.Memory[*authority.Foreign, access.Subject]
}

func (m *foreigners) subjectOf(f *authority.Foreign) access.Subject {
	if subject, ok := m.kept.Get(f); ok {
		return subject
	}
	subject := access.NewSubject(access.Member{
		Kind: access.Foreign, ID: f.Issuer + " " + f.Subject, Groups: groupsOf(f.Groups), Trust: trustlevel.Unverified,
	})
	m.kept.Put(f, subject, 1, time.Time{}, recent.Bounds{Size: maxForeigners})
	return subject
}
