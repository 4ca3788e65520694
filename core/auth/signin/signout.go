package signin

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// SignOut ends one of the caller's sessions, this one or another. fault.Forbidden with code access_denied for another person's,
// fault.NotFound when there is none or it has ended.
func (s *Service) SignOut(ctx context.Context, caller auth.Session, id auth.SessionID) error {
	return s.end(ctx, caller, id, auth.EndSignOut)
}

// Terminate is SignOut for a session that its owner ends from another one.
func (s *Service) Terminate(ctx context.Context, caller auth.Session, id auth.SessionID) error {
	return s.end(ctx, caller, id, auth.EndTerminated)
}

// end ends a session of the caller's person, who gets a notice where that is another session than the caller's and took no more
// than a password.
func (s *Service) end(ctx context.Context, caller auth.Session, id auth.SessionID, reason auth.EndReason) error {
	now := s.ports.Clock.Now()
	err := s.ports.Sessions.Update(ctx, id, func(stored *auth.Session) error {
		return stored.EndFor(caller.UserID, now, reason)
	})
	if fault.Is(err, fault.NotFound) {
		return auth.NoSuch("session")
	}
	if err != nil {
		return err
	}
	s.ports.Cache.Drop(ctx, id)
	if id != caller.ID && !caller.TrustLevel.Admits(auth.LimitedTrust) {
		s.ports.Notices.Tell(notices.Happening{
			Kind: notices.SessionEnded, UserID: caller.UserID, At: now, Address: caller.IPAddress, DeviceID: caller.DeviceID,
		})
	}
	return nil
}
