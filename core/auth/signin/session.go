package signin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
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
	if factor != "" || trust.MayLearn(session.TrustLevel, v.Signals.Device, s.config.DeviceBinding) {
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
func deviceTrust(d *auth.Device, proven bool) risk.Device {
	return risk.Device{Confirmed: d.Confirmed, Trusted: d.Trusted(), Proven: proven}
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

// issueTokens stores the first refresh token of a new session and returns it with an access token.
// After a second factor it also confirms the device and returns a token of it.
func (s *Service) issueTokens(
	ctx context.Context, session *auth.Session, attempt *loginAttempt, now time.Time,
) (Result, error) {
	secret := secrets.NewSecret[auth.RefreshSecret](s.ports.Entropy)
	if err := s.saveRefreshToken(ctx, session, secret, now); err != nil {
		return Result{}, err
	}
	r, err := s.signTokens(ctx, session, secret, now)
	if err != nil || attempt.factor == "" {
		return r, err
	}
	r.DeviceToken, err = devices.Confirm(ctx, devices.Confirmation{
		Devices: s.ports.Devices, Tokens: s.ports.DeviceTokens, Entropy: s.ports.Entropy, Trail: s.ports.Trail,
	}, session, attempt.trustDevice, now)
	return r, err
}

// saveRefreshToken stores the hash of a refresh token of a session.
func (s *Service) saveRefreshToken(
	ctx context.Context, session *auth.Session, secret auth.RefreshSecret, now time.Time,
) error {
	return s.ports.RefreshTokens.Add(ctx, auth.RefreshToken{
		Hash: auth.HashSecret(secret), SessionID: session.ID, IssuedAt: now, ExpiresAt: session.ExpiresAt,
	})
}

// signTokens signs an access token and returns it together with the refresh token. The access token
// expires with the session at the latest.
func (s *Service) signTokens(
	ctx context.Context, session *auth.Session, secret auth.RefreshSecret, now time.Time,
) (Result, error) {
	claims := secrets.NewSessionClaims(s.ports.Entropy, session, now, s.config.AccessTokenTTL)
	token, err := s.ports.Tokens.Sign(ctx, claims)
	if err != nil {
		return Result{}, err
	}
	return Result{
		UserID: session.UserID, SessionID: session.ID, TrustLevel: session.TrustLevel,
		AccessToken: token, RefreshToken: secret, ExpiresIn: claims.ExpiresAt.Sub(now),
	}, nil
}
