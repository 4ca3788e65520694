package signin

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// SignOut ends the session with the given ID, which must belong to the caller. The error is
// fault.Forbidden with code access_denied if it belongs to another person, and fault.NotFound if it
// does not exist or has ended.
func (s *Service) SignOut(ctx context.Context, caller auth.Session, id auth.SessionID) error {
	return s.endSession(ctx, caller, id, auth.EndSignOut)
}

// Terminate is like SignOut, for a session that its owner ends from another session.
func (s *Service) Terminate(ctx context.Context, caller auth.Session, id auth.SessionID) error {
	return s.endSession(ctx, caller, id, auth.EndTerminated)
}

// endSession ends a session of the caller. It sends a notice if the session is not the one of the
// caller and the caller has proved no more than a password. It records a try to end the session of
// another person (contract A-66).
func (s *Service) endSession(ctx context.Context, caller auth.Session, id auth.SessionID, reason auth.EndReason) error {
	now := s.ports.Clock.Now()
	err := s.ports.Sessions.Update(ctx, id, func(stored *auth.Session) error {
		return stored.EndFor(caller.UserID, now, reason)
	})
	if fault.Is(err, fault.NotFound) {
		return auth.NotFound("session")
	}
	if err != nil {
		act := auditing.Foreign{Action: audit.Action(reason), Session: id}
		return s.ports.Refusals.NotOwner(ctx, caller, act, err)
	}
	s.ports.Cache.Drop(ctx, id)
	if id != caller.ID && !caller.TrustLevel.Admits(auth.LimitedTrust) {
		s.ports.Notices.Notify(notices.Event{
			Kind: notices.SessionEnded, UserID: caller.UserID, At: now, Address: caller.IPAddress,
			DeviceID: caller.DeviceID,
		})
	}
	return nil
}
