// Package devices lets a person see and mark their devices, revoke them, and see their sessions. How a device comes to be known
// is the business of signin, how it is confirmed that of stepup.
package devices

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Ports are the dependencies of this package. All stores belong to one adapter, so that a transaction spans them.
type Ports struct {
	Devices      authstore.Devices
	DeviceTokens authstore.DeviceTokens
	Sessions     authstore.Sessions
	Levels       authstore.SessionLevels
	Transaction  transaction.Runner

	Cache   sessioncache.Cache
	Trail   *audit.Trail
	Notices *notices.Notifier // nil: nobody gets a notice
	Clock   clock.Clock
}

// Service acts on behalf of the person whose session it is given. Every method returns
// fault.Forbidden with code insufficient_trust below UNVERIFIED (contract A-1). It is safe for
// concurrent use.
type Service struct {
	ports Ports
}

// New returns a service.
func New(p Ports) *Service { return &Service{ports: p} }

// Devices returns one page of the caller's devices, revoked ones too, last seen first, and how many
// there are in all. A page that auth.PageRequest.Validate refuses is refused.
func (s *Service) Devices(
	ctx context.Context, caller auth.Session, page auth.PageRequest,
) (devices []auth.Device, total int, err error) {
	if err := requireListing(caller, page); err != nil {
		return nil, 0, err
	}
	return s.ports.Devices.List(ctx, caller.UserID, page)
}

// Sessions returns one page of the caller's living sessions, newest first, and how many there are in
// all. A page that auth.PageRequest.Validate refuses is refused.
func (s *Service) Sessions(
	ctx context.Context, caller auth.Session, page auth.PageRequest,
) (sessions []auth.Session, total int, err error) {
	if err := requireListing(caller, page); err != nil {
		return nil, 0, err
	}
	return s.ports.Sessions.Active(ctx, caller.UserID, s.ports.Clock.Now(), page)
}

// requireListing returns why a caller may not see a page of a list.
func requireListing(caller auth.Session, page auth.PageRequest) error {
	if err := trust.Require(caller.TrustLevel, auth.Unverified); err != nil {
		return err
	}
	return page.Validate()
}

// Mark sets the caller's own mark on a device. TRUSTED raises no session: it counts at the next login on the device, once that is
// confirmed and proves itself. UNTRUSTED lowers the living sessions on the device to LIMITED_TRUST at once, the caller's too.
// fault.Forbidden with code access_denied for another person's device, fault.NotFound when there is none.
func (s *Service) Mark(
	ctx context.Context, caller auth.Session, id auth.DeviceID, status auth.TrustStatus,
) (auth.Device, error) {
	if err := trust.Require(caller.TrustLevel, auth.Unverified); err != nil {
		return auth.Device{}, err
	}
	var device auth.Device
	var lowered []auth.SessionID
	err := s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		var before auth.TrustStatus
		lowered = nil // a retried transaction begins anew
		err := s.update(ctx, caller.UserID, id, func(d *auth.Device) {
			before, d.TrustStatus = d.TrustStatus, status
			device = *d
		})
		if err != nil {
			return err
		}
		details := map[string]any{"previousTrustStatus": string(before)}
		if status == auth.DeviceUntrusted {
			// The device is held, so that a login or a step-up on it comes before this or after it.
			which := authstore.SessionFilter{UserID: caller.UserID, DeviceID: id}
			if lowered, err = s.ports.Levels.Lower(ctx, which, auth.LimitedTrust, s.ports.Clock.Now()); err != nil {
				return err
			}
			details["sessionsLowered"] = len(lowered)
		}
		return s.ports.Trail.Record(ctx, change(author{caller.UserID, caller.ID}, &device, "trust", details))
	})
	if err != nil {
		return auth.Device{}, err
	}
	s.ports.Cache.Drop(ctx, lowered...)
	if len(lowered) > 0 {
		s.notify(notices.DeviceUntrusted, caller)
	}
	return device, nil
}

// Revoke revokes a device, ends its sessions and voids its tokens; it returns how many sessions
// ended. Revoking it again ends none (contract A-39). Errors are those of Mark.
func (s *Service) Revoke(ctx context.Context, caller auth.Session, id auth.DeviceID) (int, error) {
	if err := trust.Require(caller.TrustLevel, auth.Unverified); err != nil {
		return 0, err
	}
	ended, again, err := s.revoke(ctx, author{caller.UserID, caller.ID}, id)
	if err == nil && !again {
		s.notify(notices.DeviceRevoked, caller)
	}
	return ended, err
}

// notify sends the caller a notice of what was done in their session, where that takes no more than a password.
func (s *Service) notify(kind notices.Kind, caller auth.Session) {
	if caller.TrustLevel.Admits(auth.LimitedTrust) {
		return
	}
	s.ports.Notices.Notify(notices.Event{
		Kind: kind, UserID: caller.UserID, At: s.ports.Clock.Now(), Address: caller.IPAddress, DeviceID: caller.DeviceID,
	})
}

// author is who changes a device: its owner in a session, or, where the session is empty, an operator.
type author struct {
	user    auth.UserID
	session auth.SessionID
}

// revoke revokes a device. It returns how many sessions ended, and whether the device was revoked before.
func (s *Service) revoke(ctx context.Context, by author, id auth.DeviceID) (count int, again bool, err error) {
	var ended []auth.SessionID
	err = s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		var device auth.Device
		again = false
		err := s.update(ctx, by.user, id, func(d *auth.Device) {
			again, d.Revoked = d.Revoked, true
			device = *d
		})
		if err != nil || again {
			ended = nil
			return err
		}
		ended, err = s.ports.Sessions.End(ctx,
			authstore.SessionFilter{UserID: by.user, DeviceID: id}, s.ports.Clock.Now(), auth.EndDeviceRevoked)
		if err != nil {
			return err
		}
		if err := s.ports.DeviceTokens.Remove(ctx, id); err != nil {
			return err
		}
		return s.ports.Trail.Record(ctx, change(by, &device, "revoke", map[string]any{"sessionsInvalidated": len(ended)}))
	})
	if err != nil {
		return 0, false, err
	}
	s.ports.Cache.Drop(ctx, ended...)
	return len(ended), again, nil
}

// update alters a device of a person.
func (s *Service) update(ctx context.Context, of auth.UserID, id auth.DeviceID, alter func(*auth.Device)) error {
	err := s.ports.Devices.Update(ctx, id, func(d *auth.Device) error {
		if d.UserID != of {
			return fault.New(fault.Forbidden, auth.CodeAccessDenied, "the device belongs to somebody else")
		}
		alter(d)
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		return auth.NoSuch("device")
	}
	return err
}

// change is the audit entry of a change of a device.
func change(by author, d *auth.Device, action string, details map[string]any) audit.Entry {
	details["action"], details["deviceId"], details["deviceIdentity"] = action, string(d.ID), string(d.Identity)
	details["trustStatus"] = string(d.TrustStatus)
	if by.session == "" {
		details[audit.Actor] = audit.Operator
	} else {
		details["sessionId"] = string(by.session)
	}
	return audit.Entry{Type: auth.DeviceChange, UserID: by.user, Success: true, Details: details}
}
