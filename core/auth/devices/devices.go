// Package devices lists, marks and revokes the devices of a person, and lists their sessions.
// Package signin records devices; signin and stepup confirm them.
package devices

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Ports are the dependencies of this package. All stores belong to one adapter, so that a
// transaction spans them.
type Ports struct {
	Devices      authstore.Devices
	DeviceTokens authstore.DeviceTokens
	Sessions     authstore.Sessions
	Levels       authstore.SessionLevels
	Transaction  transaction.Runner

	Cache    sessioncache.Cache
	Trail    *auditing.Trail
	Refusals *auditing.Refusals // nil: acts on devices of other people are not recorded
	Notices  *notices.Notifier  // nil: no notices are sent
	Clock    clock.Clock
}

// Service acts on behalf of the person whose session it is given. Every method returns
// fault.Forbidden with code insufficient_trust below UNVERIFIED (contract A-1). It is safe for
// concurrent use.
type Service struct {
	ports Ports
}

// New returns a service.
func New(p Ports) *Service { return &Service{ports: p} }

// ListDevices returns one page of the caller's devices, including revoked ones, last seen first,
// and the total number. It returns the error of auth.PageRequest.Validate for a page out of range.
func (s *Service) ListDevices(
	ctx context.Context, caller auth.Session, page auth.PageRequest,
) (devices []auth.Device, total int, err error) {
	if err := requireListing(caller, page); err != nil {
		return nil, 0, err
	}
	return s.ports.Devices.List(ctx, caller.UserID, page)
}

// ListSessions returns one page of the caller's active sessions, newest first, and the total
// number. It returns the error of auth.PageRequest.Validate for a page out of range.
func (s *Service) ListSessions(
	ctx context.Context, caller auth.Session, page auth.PageRequest,
) (sessions []auth.Session, total int, err error) {
	if err := requireListing(caller, page); err != nil {
		return nil, 0, err
	}
	return s.ports.Sessions.Active(ctx, caller.UserID, s.ports.Clock.Now(), page)
}

// requireListing returns an error if a caller must not list anything or the page is out of range.
func requireListing(caller auth.Session, page auth.PageRequest) error {
	if err := trust.Require(caller.TrustLevel, auth.Unverified); err != nil {
		return err
	}
	return page.Validate()
}

// SetTrust sets the trust status of a device of the caller. TRUSTED does not change active
// sessions: it has an effect at the next login on the device, if the device is confirmed and the
// login sends its token. Below FULL_TRUST it counts only after the next code on the device, so that
// a session cannot lift its own limit (contract A-38). UNTRUSTED lowers the active sessions on the
// device to LIMITED_TRUST at once, including the caller's. The error is fault.Forbidden with code
// access_denied for a device of another person, and fault.NotFound if the device does not exist.
func (s *Service) SetTrust(
	ctx context.Context, caller auth.Session, id auth.DeviceID, status auth.TrustStatus,
) (auth.Device, error) {
	if err := trust.Require(caller.TrustLevel, auth.Unverified); err != nil {
		return auth.Device{}, err
	}
	done, err := transaction.Do(ctx, s.ports.Transaction, func(ctx context.Context) (deviceChange, error) {
		done, before, err := s.markDevice(ctx, caller, id, status)
		if err != nil {
			return deviceChange{}, err
		}
		details := audit.Details{detailPreviousStatus: audit.Text(before)}
		if done.MarkUnproven {
			details["countsAfterCode"] = audit.Flag(true)
		}
		if status == auth.DeviceUntrusted {
			// The row of the device is locked until the transaction ends, so no login or step-up on
			// the device can raise a session in the meantime.
			which := authstore.SessionFilter{UserID: caller.UserID, DeviceID: id}
			if done.sessions, err = s.ports.Levels.Lower(ctx, which, auth.LimitedTrust,
				s.ports.Clock.Now()); err != nil {
				return deviceChange{}, err
			}
			details["sessionsLowered"] = audit.Number(len(done.sessions))
		}
		return done, s.ports.Trail.RecordChanges(ctx,
			newChange(changeActor{caller.UserID, caller.ID}, &done.Device, "trust", details))
	})
	if err != nil {
		return auth.Device{}, s.refuse(ctx, caller, "trust", id, err)
	}
	s.ports.Cache.Drop(ctx, done.sessions...)
	switch {
	case done.MarkUnproven:
		s.notify(notices.DeviceTrusted, caller)
	case len(done.sessions) > 0:
		s.notifyOwner(notices.DeviceUntrusted, caller)
	}
	return done.Device, nil
}

type deviceChange struct {
	auth.Device

	sessions       []auth.SessionID // that were lowered or ended
	alreadyRevoked bool
}

// markDevice sets the trust status of a device and returns the one before. It reads the level of
// the caller's session after it has locked the device, because the caller may be a cached copy from
// before the session was lowered or raised.
func (s *Service) markDevice(
	ctx context.Context, caller auth.Session, id auth.DeviceID, status auth.TrustStatus,
) (after deviceChange, before auth.TrustStatus, err error) {
	err = s.updateDevice(ctx, caller.UserID, id, func(d *auth.Device) {
		before = d.TrustStatus
		d.MarkUnproven = status == auth.DeviceTrusted && !d.Trusted()
		d.TrustStatus = status
		after.Device = *d
	})
	if err != nil || !after.MarkUnproven {
		return after, before, err
	}
	session, err := s.ports.Sessions.Get(ctx, caller.ID)
	if err != nil || !session.TrustLevel.Admits(auth.FullTrust) {
		return after, before, err
	}
	return after, before, s.updateDevice(ctx, caller.UserID, id, func(d *auth.Device) {
		d.MarkUnproven = false
		after.Device = *d
	})
}

// Rename gives a device of the caller a name, or with an empty one takes it away (contract A-56).
// It returns fault.Invalid for a name that auth.ParseDeviceName refuses; the other errors are those
// of SetTrust.
func (s *Service) Rename(ctx context.Context, caller auth.Session, id auth.DeviceID, name string) (auth.Device, error) {
	if err := trust.Require(caller.TrustLevel, auth.Unverified); err != nil {
		return auth.Device{}, err
	}
	name, err := auth.ParseDeviceName(name)
	if err != nil {
		return auth.Device{}, err
	}
	device, err := transaction.Do(ctx, s.ports.Transaction, func(ctx context.Context) (device auth.Device, err error) {
		var before string
		err = s.updateDevice(ctx, caller.UserID, id, func(d *auth.Device) {
			before, d.Name = d.Name, name
			device = *d
		})
		if err != nil || before == name {
			return device, err
		}
		details := audit.Details{"previousName": audit.Text(before), "name": audit.Text(name)}
		return device, s.ports.Trail.RecordChanges(ctx,
			newChange(changeActor{caller.UserID, caller.ID}, &device, "rename", details))
	})
	if err != nil {
		return auth.Device{}, s.refuse(ctx, caller, "rename", id, err)
	}
	return device, nil
}

// Revoke revokes a device, ends its sessions and removes its tokens. It returns the number of ended
// sessions, which is 0 if the device was revoked before (contract A-39). The errors are those of
// SetTrust.
func (s *Service) Revoke(ctx context.Context, caller auth.Session, id auth.DeviceID) (int, error) {
	if err := trust.Require(caller.TrustLevel, auth.Unverified); err != nil {
		return 0, err
	}
	done, err := s.revokeDevice(ctx, changeActor{caller.UserID, caller.ID}, id)
	if err != nil {
		return 0, s.refuse(ctx, caller, "revoke", id, err)
	}
	if !done.alreadyRevoked {
		s.notifyOwner(notices.DeviceRevoked, caller)
	}
	return len(done.sessions), nil
}

// refuse returns the error of an act on a device. It records the act if the device belongs to
// another person (contract A-66).
func (s *Service) refuse(
	ctx context.Context, caller auth.Session, action audit.Action, id auth.DeviceID, cause error,
) error {
	return s.ports.Refusals.NotOwner(ctx, caller, auditing.Foreign{Action: action, Device: id}, cause)
}

// notifyOwner sends the caller a notice of a change. It sends no notice if the caller's session is
// at LIMITED_TRUST or above: below that, somebody who knows only the password may have made the
// change.
func (s *Service) notifyOwner(kind notices.Kind, caller auth.Session) {
	if !caller.TrustLevel.Admits(auth.LimitedTrust) {
		s.notify(kind, caller)
	}
}

// notify sends the caller a notice of a change.
func (s *Service) notify(kind notices.Kind, caller auth.Session) {
	s.ports.Notices.Notify(notices.Event{
		Kind: kind, UserID: caller.UserID, At: s.ports.Clock.Now(), Address: caller.IPAddress,
		DeviceID: caller.DeviceID,
	})
}

// changeActor is the owner of a changed device, and the owner's session in which the device was
// changed. The session is empty if an operator changed the device.
type changeActor struct {
	user    auth.UserID
	session auth.SessionID
}

// revokeDevice revokes a device and ends its sessions.
func (s *Service) revokeDevice(ctx context.Context, by changeActor, id auth.DeviceID) (deviceChange, error) {
	done, err := transaction.Do(ctx, s.ports.Transaction, func(ctx context.Context) (done deviceChange, err error) {
		err = s.updateDevice(ctx, by.user, id, func(d *auth.Device) {
			done.alreadyRevoked, d.Revoked = d.Revoked, true
			done.Device = *d
		})
		if err != nil || done.alreadyRevoked {
			return done, err
		}
		done.sessions, err = s.ports.Sessions.End(ctx,
			authstore.SessionFilter{UserID: by.user, DeviceID: id}, s.ports.Clock.Now(), auth.EndDeviceRevoked)
		if err != nil {
			return done, err
		}
		if err := s.ports.DeviceTokens.Remove(ctx, id); err != nil {
			return done, err
		}
		details := audit.Details{"sessionsInvalidated": audit.Number(len(done.sessions))}
		return done, s.ports.Trail.RecordChanges(ctx, newChange(by, &done.Device, "revoke", details))
	})
	s.ports.Cache.Drop(ctx, done.sessions...)
	return done, err
}

// updateDevice calls alter with a stored device and stores the result. It returns fault.Forbidden
// if the device belongs to another person, and fault.NotFound if it does not exist.
func (s *Service) updateDevice(
	ctx context.Context, owner auth.UserID, id auth.DeviceID, alter func(*auth.Device),
) error {
	err := s.ports.Devices.Update(ctx, id, func(d *auth.Device) error {
		if d.UserID != owner {
			return fault.New(fault.Forbidden, "the device belongs to somebody else").WithCode(auth.CodeAccessDenied)
		}
		alter(d)
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		return auth.NotFound("device")
	}
	return err
}

// detailPreviousStatus is the detail with the trust status that a mark has replaced.
const detailPreviousStatus = "previousTrustStatus"

// newChange returns the audit event of a change of a device. Only that of an operator names the
// device as the object, as other events of operators do.
func newChange(by changeActor, d *auth.Device, action audit.Action, details audit.Details) audit.Change {
	d.Describe(details)
	details.Set("sessionId", string(by.session))
	if by.session == "" {
		audit.About(details, audit.Object{Kind: "device", Key: string(d.ID)})
	}
	return audit.Change{
		Category: audit.DeviceChange, Action: action, Subject: audit.Subject(by.user), ByOperator: by.session == "",
		Details: details,
	}
}

// maxTokens is the number of valid tokens of a device (contract A-37). Older ones are removed.
const maxTokens = 5

// Confirmation holds the dependencies of Confirm.
type Confirmation struct {
	Devices authstore.Devices
	Tokens  authstore.DeviceTokens
	Entropy secrets.Entropy
	Trail   *auditing.Trail
}

// Confirm marks the device of a session as confirmed, after the session has passed step-up or MFA,
// and returns a new device token (contract ). If trust is set, it also marks the device
// as TRUSTED. From then on such a mark counts, anyone who has set it (contract A-38). It joins the
// transaction of the context.
func Confirm(
	ctx context.Context, on Confirmation, session *auth.Session, trust bool, now time.Time,
) (auth.DeviceSecret, error) {
	var device auth.Device
	var before auth.TrustStatus
	err := on.Devices.Update(ctx, session.DeviceID, func(d *auth.Device) error {
		before, d.Confirmed, d.MarkUnproven = d.TrustStatus, true, false
		if trust {
			d.TrustStatus = auth.DeviceTrusted
		}
		device = *d
		return nil
	})
	if err != nil {
		return "", err
	}
	secret := secrets.NewSecret[auth.DeviceSecret](on.Entropy)
	err = on.Tokens.Add(ctx,
		auth.DeviceToken{Hash: auth.HashSecret(secret), DeviceID: device.ID, IssuedAt: now}, maxTokens)
	if err != nil || device.TrustStatus == before {
		return secret, err
	}
	return secret, on.Trail.RecordChanges(ctx, newChange(changeActor{session.UserID, session.ID}, &device, "trust",
		audit.Details{detailPreviousStatus: audit.Text(before)}))
}
