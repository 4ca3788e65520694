package signin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assess"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// open records the device, scores the sign-in, and makes the session with its audit events.
func (s *Service) open(ctx context.Context, from Visit, v *visitor, now time.Time) (auth.Session, error) {
	device, made, err := s.meet(ctx, from, v, now)
	if err != nil {
		return auth.Session{}, err
	}
	v.fresh = made
	verdict, err := s.assessor.Assess(ctx, assess.Visit{
		At: now, User: v.account.ID, Address: from.Address, Confirmed: v.factor != "",
		Device: standing(&device, v.proven && (device.ID == v.device.ID || s.config.DeviceBinding == trust.BindingOff)),
	})
	if err != nil {
		return auth.Session{}, err
	}
	session := auth.Session{
		ID:     secrets.NewUUID[auth.SessionID](s.ports.Entropy),
		UserID: v.account.ID, DeviceID: device.ID, DeviceIdentity: device.Identity,
		TrustLevel: verdict.Level,
		RiskScore:  verdict.Score,
		CreatedAt:  now, LastActivity: now,
		ExpiresAt:    now.Add(min(s.config.RefreshTokenTTL, s.config.RefreshTokenMaxAge)),
		MaxExpiresAt: now.Add(s.config.RefreshTokenMaxAge),
		IPAddress:    from.Address,
	}
	if err := s.ports.Sessions.Create(ctx, session); err != nil {
		return auth.Session{}, err
	}
	return session, s.ports.Trail.Record(ctx, entriesOf(&session, &verdict, &device, made, v.factor)...)
}

// standing is what is known of a device for trust.
func standing(d *auth.Device, proven bool) trust.Device {
	return trust.Device{Confirmed: d.Confirmed, Trusted: d.TrustStatus == auth.DeviceTrusted, Proven: proven}
}

// maxRevocations is how often in a row a device may be revoked under a login's hands.
const maxRevocations = 3

// meet finds or makes the device and notes the visit. The device is held for the transaction, so that revoking it and this
// login come one after the other.
func (s *Service) meet(ctx context.Context, from Visit, v *visitor, now time.Time) (auth.Device, bool, error) {
	kind := clientOf(from.Device.UserAgent())
	fresh := auth.Device{
		ID:     secrets.NewUUID[auth.DeviceID](s.ports.Entropy),
		UserID: v.account.ID, Identity: v.identity, TrustStatus: auth.DevicePending, FirstSeen: now, LastSeen: now,
		Type: kind.device, Browser: kind.browser, OS: kind.os, LastIPAddress: from.Address,
	}
	for range maxRevocations {
		device, made, err := s.ports.Devices.Ensure(ctx, fresh)
		if err != nil || made {
			return device, made, err
		}
		revoked := false
		err = s.ports.Devices.Update(ctx, device.ID, func(d *auth.Device) error {
			if revoked = d.Revoked; revoked {
				return nil
			}
			d.LastSeen, d.LastIPAddress = now, from.Address
			d.Type, d.Browser, d.OS = kind.device, kind.browser, kind.os
			device = *d
			return nil
		})
		if err != nil || !revoked {
			return device, false, err
		}
	}
	return auth.Device{}, false, fault.New(fault.Unavailable, "", "the device is being revoked, try again").After(time.Second)
}

// entriesOf returns what a new session leaves in the audit log (contract A-47), in the order of the
// events.
func entriesOf(
	session *auth.Session, verdict *assess.Verdict, device *auth.Device, made bool, factor auth.Factor,
) []audit.Entry {
	attempt := map[string]any{
		"ipAddress": address(session.IPAddress), "deviceIdentity": string(session.DeviceIdentity),
		"trustLevel": session.TrustLevel.String(), "sessionId": string(session.ID),
	}
	if factor != "" {
		attempt["step"], attempt["factor"] = stepMFA, string(factor)
	}
	entries := []audit.Entry{
		{Type: auth.RiskEvaluation, UserID: session.UserID, Success: true, Details: riskDetails(session, verdict)},
		{Type: auth.LoginAttempt, UserID: session.UserID, Success: true, Details: attempt},
	}
	if made {
		entries = append(entries, audit.Entry{
			Type: auth.DeviceChange, UserID: session.UserID, Success: true, Details: map[string]any{
				"action": "new", "deviceId": string(device.ID), "deviceIdentity": string(device.Identity),
				"trustStatus": string(device.TrustStatus),
			},
		})
	}
	if session.TrustLevel == auth.HighRisk {
		entries = append(entries, audit.Entry{
			Type: auth.SuspiciousActivity, UserID: session.UserID, Details: map[string]any{
				"reason": "high_risk", "riskScore": verdict.Score, "sessionId": string(session.ID),
				"ipAddress": address(session.IPAddress), "deviceIdentity": string(session.DeviceIdentity),
			},
		})
	}
	return entries
}
