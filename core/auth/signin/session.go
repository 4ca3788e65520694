package signin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// createSession records the device, scores the sign-in, stores the session and writes its audit
// events. It reports whether the device was created.
func (s *Service) createSession(
	ctx context.Context, from Origin, attempt *loginAttempt, now time.Time,
) (session auth.Session, newDevice bool, err error) {
	device, made, err := s.ensureDevice(ctx, from, attempt, now)
	if err != nil {
		return auth.Session{}, false, err
	}
	verdict, err := s.assessor.Assess(ctx, assessment.SignIn{
		At: now, User: attempt.account.ID, Address: from.Address, Confirmed: attempt.factor != "",
		Info: from.Device, WithoutHistory: attempt.noHistory,
		Device: deviceTrust(&device,
			attempt.deviceProven && (device.ID == attempt.device.ID || s.config.DeviceBinding == trust.BindingOff)),
	})
	if err != nil {
		return auth.Session{}, false, err
	}
	session = auth.Session{
		ID:     secrets.NewUUID[auth.SessionID](s.ports.Entropy),
		UserID: attempt.account.ID, DeviceID: device.ID, DeviceIdentity: device.Identity,
		TrustLevel: verdict.Level,
		RiskScore:  verdict.Score,
		CreatedAt:  now, LastActivity: now,
		ExpiresAt:    now.Add(min(s.config.RefreshTokenTTL, s.config.RefreshTokenMaxAge)),
		MaxExpiresAt: now.Add(s.config.RefreshTokenMaxAge),
		IPAddress:    from.Address,
	}
	// A link leads to full trust at any score, because only its person has it.
	if attempt.factor.StepsUp() && (attempt.factor == auth.FactorLink || verdict.Level > auth.HighRisk) {
		session.TrustLevel = auth.FullTrust
	}
	if attempt.most != 0 {
		session.TrustLevel = min(session.TrustLevel, attempt.most)
	}
	if until := attempt.company.Until; !until.IsZero() && until.Before(session.MaxExpiresAt) {
		session.MaxExpiresAt = until
		if until.Before(session.ExpiresAt) {
			session.ExpiresAt = until
		}
	}
	if err := s.ports.Sessions.Create(ctx, session); err != nil {
		return auth.Session{}, false, err
	}
	if err := s.bindLogin(ctx, attempt, session.ID); err != nil {
		return auth.Session{}, false, err
	}
	if err := s.learn(ctx, &session, &verdict, attempt.factor); err != nil {
		return auth.Session{}, false, err
	}
	return session, made, s.ports.Trail.RecordChanges(ctx,
		newSessionChanges(&session, &verdict, &device, made, attempt)...)
}

// bindLogin stores the sign-in at a provider from which a session comes, or gives the session to the
// one that has waited for a second factor.
func (s *Service) bindLogin(ctx context.Context, attempt *loginAttempt, session auth.SessionID) error {
	if l := attempt.login; l.ID != "" {
		l.SessionID = session
		return s.ports.Logins.Add(ctx, l)
	}
	if attempt.company.ID == "" {
		return nil
	}
	return s.ports.Logins.Bind(ctx, company.LoginID(attempt.company.ID), session)
}

// learn adds a sign-in to the counts of the history (contract A-58). A second factor counts like a
// step-up. From another session the service learns when it passes a step-up.
func (s *Service) learn(ctx context.Context, session *auth.Session, v *assessment.Verdict, factor auth.Factor) error {
	if !v.History.Known() {
		return nil
	}
	additions := history.Learn(v.History.Observation, v.History.Counts)
	var err error
	if factor != "" || history.MayLearn(session.TrustLevel, v.Signals.Device, s.config.DeviceBinding) {
		err = s.ports.Counts.Add(ctx, session.UserID, additions, session.CreatedAt)
	} else {
		err = s.ports.Deferrals.Defer(ctx, *session, additions)
	}
	if err != nil {
		return &assessment.HistoryError{Cause: err}
	}
	return nil
}

// deviceTrust returns the properties of a device that its trust depends on.
func deviceTrust(d *auth.Device, proven bool) trust.Device {
	return trust.Device{Confirmed: d.Confirmed, Trusted: d.Trusted(), Proven: proven}
}

// maxRevocations is how often a login tries to record a device that is revoked at the same time.
const maxRevocations = 3

// ensureDevice returns the device of the attempt, updated to this sign-in, and whether it was
// created. It locks the row of the device for the transaction, so that a revocation comes before or
// after this login. The error is fault.Unavailable if the device is revoked again and again.
func (s *Service) ensureDevice(
	ctx context.Context, from Origin, attempt *loginAttempt, now time.Time,
) (auth.Device, bool, error) {
	kind := parseUserAgent(from.Device.UserAgent())
	fresh := auth.Device{
		ID:     secrets.NewUUID[auth.DeviceID](s.ports.Entropy),
		UserID: attempt.account.ID, Identity: attempt.identity, TrustStatus: auth.DevicePending, FirstSeen: now,
		LastSeen: now,
		Type:     kind.device, Browser: kind.browser, OS: kind.os, LastIPAddress: from.Address,
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
	return auth.Device{}, false, fault.New(fault.Unavailable, "the device is being revoked, try again").
		After(time.Second)
}
