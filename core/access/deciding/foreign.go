package deciding

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/recent"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

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
