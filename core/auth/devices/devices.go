// Package devices lets a person see and mark their devices, revoke them, and see their sessions. How a device comes to be known
// is the business of signin, how it is confirmed that of stepup.
package devices

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/devicestore"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/sessionstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Records are the stores that this package works on; all of one adapter, so that a transaction spans them.
type Records struct {
	Devices      devicestore.Store
	DeviceTokens devicestore.Tokens
	Sessions     sessionstore.Store
	Transaction  transaction.Runner
}

// Service acts on behalf of the person whose session it is given. Every method is fault.Forbidden with code insufficient_trust
// below UNVERIFIED (authentication document, requireVerified). It is safe for concurrent use.
type Service struct {
	records Records
	cache   sessioncache.Cache
	trail   *audit.Trail
	clock   clock.Clock
}

// New returns a service.
func New(r Records, cache sessioncache.Cache, trail *audit.Trail, c clock.Clock) *Service {
	return &Service{records: r, cache: cache, trail: trail, clock: c}
}

// Devices returns one page of the caller's devices, revoked ones too, last seen first, and how many
// there are in all. A page that auth.PageRequest.Validate refuses is refused.
func (s *Service) Devices(
	ctx context.Context, caller auth.Session, page auth.PageRequest,
) (devices []auth.Device, total int, err error) {
	if err := requireListing(caller, page); err != nil {
		return nil, 0, err
	}
	return s.records.Devices.List(ctx, caller.UserID, page)
}

// Sessions returns one page of the caller's living sessions, newest first, and how many there are in
// all. A page that auth.PageRequest.Validate refuses is refused.
func (s *Service) Sessions(
	ctx context.Context, caller auth.Session, page auth.PageRequest,
) (sessions []auth.Session, total int, err error) {
	if err := requireListing(caller, page); err != nil {
		return nil, 0, err
	}
	return s.records.Sessions.Active(ctx, caller.UserID, s.clock.Now(), page)
}

// requireListing returns why a caller may not see a page of a list.
func requireListing(caller auth.Session, page auth.PageRequest) error {
	if err := trust.Require(caller.TrustLevel, auth.Unverified); err != nil {
		return err
	}
	return page.Validate()
}

// Mark sets the caller's own mark on a device. It counts once the device is confirmed (decisions 2.3). fault.Forbidden with code
// access_denied for another person's device, fault.NotFound when there is none.
func (s *Service) Mark(
	ctx context.Context, caller auth.Session, id auth.DeviceID, status auth.TrustStatus,
) (auth.Device, error) {
	if err := trust.Require(caller.TrustLevel, auth.Unverified); err != nil {
		return auth.Device{}, err
	}
	var device auth.Device
	err := s.records.Transaction.Atomically(ctx, func(ctx context.Context) error {
		var before auth.TrustStatus
		err := s.update(ctx, caller.UserID, id, func(d *auth.Device) {
			before, d.TrustStatus = d.TrustStatus, status
			device = *d
		})
		if err != nil {
			return err
		}
		return s.trail.Record(ctx, change(author{caller.UserID, caller.ID}, &device, "trust", map[string]any{"previousTrustStatus": string(before)}))
	})
	return device, err
}

// Revoke revokes a device, ends its sessions and voids its tokens; it returns how many sessions ended. Revoking it again ends
// none (decisions 2.4). Errors as for Mark.
func (s *Service) Revoke(ctx context.Context, caller auth.Session, id auth.DeviceID) (int, error) {
	if err := trust.Require(caller.TrustLevel, auth.Unverified); err != nil {
		return 0, err
	}
	return s.revoke(ctx, author{caller.UserID, caller.ID}, id)
}

// author is who changes a device: its owner in a session, or, where the session is empty, an operator.
type author struct {
	user    auth.UserID
	session auth.SessionID
}

func (s *Service) revoke(ctx context.Context, by author, id auth.DeviceID) (int, error) {
	var ended []auth.SessionID
	err := s.records.Transaction.Atomically(ctx, func(ctx context.Context) error {
		var device auth.Device
		again := false
		err := s.update(ctx, by.user, id, func(d *auth.Device) {
			again, d.Revoked = d.Revoked, true
			device = *d
		})
		if err != nil || again {
			ended = nil
			return err
		}
		ended, err = s.records.Sessions.End(ctx,
			sessionstore.Filter{UserID: by.user, DeviceID: id}, s.clock.Now(), auth.EndDeviceRevoked)
		if err != nil {
			return err
		}
		if err := s.records.DeviceTokens.Remove(ctx, id); err != nil {
			return err
		}
		return s.trail.Record(ctx, change(by, &device, "revoke", map[string]any{"sessionsInvalidated": len(ended)}))
	})
	if err != nil {
		return 0, err
	}
	s.cache.Drop(ctx, ended...)
	return len(ended), nil
}

// update alters a device of a person.
func (s *Service) update(ctx context.Context, of auth.UserID, id auth.DeviceID, alter func(*auth.Device)) error {
	err := s.records.Devices.Update(ctx, id, func(d *auth.Device) error {
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
