package authorizing

import (
	"context"
	"errors"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// maxApplications is how many applications of a person are shown.
const maxApplications = 200

// Applications returns the applications of a person, the newest first.
func (s *Service) Applications(ctx context.Context, user auth.UserID) ([]Application, error) {
	families, err := s.ports.Families.Active(ctx, user, s.ports.Clock.Now(), maxApplications)
	if err != nil {
		return nil, err
	}
	all := make([]Application, len(families))
	for i := range families {
		all[i].Family = families[i]
		t, err := s.findTarget(ctx, families[i].Resource, nil)
		var closed no
		if err != nil && !errors.As(err, &closed) {
			return nil, err
		}
		all[i].Servers = t.servers
	}
	return all, nil
}

// Remove ends an application of a person, and what was agreed with its client. It returns fault.NotFound.
func (s *Service) Remove(ctx context.Context, session auth.Session, id oauth.FamilyID) error {
	f, err := s.ports.Families.Get(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && f.UserID != session.UserID {
		return auth.NotFound("application")
	}
	if err != nil {
		return err
	}
	return s.end(ctx, &f, session.IPAddress, true)
}

// Metadata returns what clients need to know.
func (s *Service) Metadata(ctx context.Context) (Metadata, error) {
	all, err := s.asserting(ctx)
	return Metadata{
		Issuer: s.config.Issuer, Documents: s.config.Clients != ClientsRegistered, Assertions: len(all) > 0,
	}, err
}
