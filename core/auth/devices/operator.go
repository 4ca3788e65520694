package devices

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Operator changes devices and sessions of any person. Only the operator commands use it, not the
// API. Its changes take effect on every instance within sessioncache.MaxAge and are in the audit
// log. It is safe for concurrent use.
type Operator struct{ service *Service }

// NewOperator returns an Operator that uses the ports of s.
func NewOperator(s *Service) *Operator { return &Operator{s} }

// ListDevices returns all devices of a person, including revoked ones, last seen first.
func (o *Operator) ListDevices(ctx context.Context, of auth.UserID) ([]auth.Device, error) {
	return auth.AllPages(func(page auth.PageRequest) ([]auth.Device, int, error) {
		return o.service.ports.Devices.List(ctx, of, page)
	})
}

// ListSessions returns all active sessions of a person, newest first.
func (o *Operator) ListSessions(ctx context.Context, of auth.UserID) ([]auth.Session, error) {
	now := o.service.ports.Clock.Now()
	return auth.AllPages(func(page auth.PageRequest) ([]auth.Session, int, error) {
		return o.service.ports.Sessions.Active(ctx, of, now, page)
	})
}

// Revoke revokes a person's device as Service.Revoke does.
func (o *Operator) Revoke(ctx context.Context, of auth.UserID, id auth.DeviceID) (int, error) {
	done, err := o.service.revokeDevice(ctx, changeActor{user: of}, id)
	return len(done.sessions), err
}

// EndSession ends one session of a person. The error is fault.Forbidden with code access_denied for
// a session of another person, and fault.NotFound if it does not exist or has ended.
func (o *Operator) EndSession(ctx context.Context, of *auth.Account, id auth.SessionID) error {
	_, err := o.endSessions(ctx, of, audit.Details{"sessionId": audit.Text(id)},
		func(ctx context.Context) ([]auth.SessionID, error) {
			err := o.service.ports.Sessions.Update(ctx, id, func(s *auth.Session) error {
				return s.EndFor(of.ID, o.service.ports.Clock.Now(), auth.EndOperator)
			})
			if fault.Is(err, fault.NotFound) {
				err = auth.NotFound("session")
			}
			return []auth.SessionID{id}, err
		})
	return err
}

// EndAllSessions ends every session of a person and returns their number.
func (o *Operator) EndAllSessions(ctx context.Context, of *auth.Account) (int, error) {
	return o.endSessions(ctx, of, audit.Details{}, func(ctx context.Context) ([]auth.SessionID, error) {
		return o.service.ports.Sessions.End(ctx, authstore.SessionFilter{UserID: of.ID}, o.service.ports.Clock.Now(),
			auth.EndOperator)
	})
}

// endSessions calls do, records the sessions that it ended, and then removes them from the cache.
// It returns their number.
func (o *Operator) endSessions(
	ctx context.Context, of *auth.Account, details audit.Details, do func(context.Context) ([]auth.SessionID, error),
) (int, error) {
	ended, err := transaction.Do(ctx, o.service.ports.Transaction, func(ctx context.Context) ([]auth.SessionID, error) {
		ended, err := do(ctx)
		if err != nil {
			return nil, err
		}
		details["sessionsInvalidated"] = audit.Number(len(ended))
		return ended, o.service.ports.Trail.RecordChanges(ctx, audit.Change{
			Category: audit.AccountChange, Action: "end_sessions", Subject: audit.Subject(of.ID), ByOperator: true,
			Details: audit.About(details, audit.Object{Kind: "person", Key: string(of.Email)}),
		})
	})
	if err != nil {
		return 0, err
	}
	o.service.ports.Cache.Drop(ctx, ended...)
	return len(ended), nil
}
