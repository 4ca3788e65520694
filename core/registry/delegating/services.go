package delegating

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/servicestore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// ServicePorts are the dependencies of Services. All fields are required.
type ServicePorts struct {
	Transactions transaction.Runner
	Services     servicestore.Services
	Recorder     authority.Recorder
	Clock        clock.Clock
}

// Services lists, makes, changes and removes service accounts for operators. Each method returns
// fault.Unavailable when the database fails. It is safe for concurrent use.
type Services struct {
	rules publisher.Rules
	ports ServicePorts
}

// NewServices returns Services.
func NewServices(c permit.Config, p ServicePorts) *Services { return &Services{c.Rules, p} }

// List returns at most limit accounts whose names are greater than after, ordered by name.
func (s *Services) List(ctx context.Context, after service.Name, limit int) ([]service.Account, error) {
	return s.ports.Services.List(ctx, after, limit)
}

// Get returns an account, or fault.NotFound.
func (s *Services) Get(ctx context.Context, name service.Name) (service.Account, error) {
	return s.ports.Services.Get(ctx, name)
}

// Parse returns the account of a draft for Put. The error is that of service.New.
func (s *Services) Parse(d service.Draft) (service.Account, error) { return service.New(d, s.rules) }

// Put makes an account, or replaces one, and reports whether it is new. One that is the same stays,
// without an event. The file that manages it stays the same unless a has another. The error is that
// of check, of Caller.RequireAll if a token would give workloads scopes that it does not have, or of
// Caller.RequireNetworks, because workloads may be anywhere.
func (s *Services) Put(
	ctx context.Context, a service.Account, check registry.Check[service.Account],
) (stored service.Account, created bool, err error) {
	who := authority.Giver(ctx)
	for i := range a.Workloads {
		if err := who.RequireAll(a.Workloads[i].Scopes); err != nil {
			return service.Account{}, false, err
		}
		if err := who.RequireNetworks(nil); err != nil {
			return service.Account{}, false, err
		}
	}
	err = s.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		var before *service.Account
		switch found, err := s.ports.Services.Get(ctx, a.Name); {
		case err == nil:
			before = &found
		case !fault.Is(err, fault.NotFound):
			return err
		}
		if err := check.Permit(before); err != nil {
			return err
		}
		stored, created = a, before == nil
		stored.CreatedAt = s.ports.Clock.Now()
		if !created {
			stored.CreatedAt, stored.ManagedBy = before.CreatedAt, cmp.Or(a.ManagedBy, before.ManagedBy)
			if len(audit.Compare(before.Object().Fields, stored.Object().Fields)) == 0 {
				return nil
			}
		}
		put := func(*service.Account) (service.Account, error) { return stored, nil }
		if err := s.ports.Services.Put(ctx, a.Name, put); err != nil {
			return err
		}
		return s.ports.Recorder.RecordChanges(ctx, newServiceChange(before, &stored))
	})
	return stored, created, err
}

// Objects returns the accounts as objects of any kind.
func (s *Services) Objects() management.Objects {
	parse := func(f audit.Details) (service.Account, error) { return s.Parse(service.ReadDraft(f)) }
	return managing.Of[service.Account]{
		Of: &service.Kind, From: parse,
		Show: func(a *service.Account) management.Object {
			return management.Object{
				Object: audit.Object{Kind: service.Kind.Name, Key: string(a.Name), Fields: a.Fields()}, Owner: a.ManagedBy,
				Fixed: audit.Details{"createdAt": audit.Time(a.CreatedAt)},
			}
		},
		All: func(ctx context.Context, after string, limit int) ([]service.Account, error) {
			return s.List(ctx, service.Name(after), limit)
		},
		One: func(ctx context.Context, key string) (service.Account, error) { return s.Get(ctx, service.Name(key)) },
		Store: func(
			ctx context.Context, c management.Change, check func(*service.Account) error,
		) (service.Account, bool, error) {
			a, err := parse(c.Fields)
			if err != nil {
				return a, false, err
			}
			a.ManagedBy = c.Owner
			return s.Put(ctx, a, check)
		},
		Drop: func(ctx context.Context, key string, _ management.Change, check func(*service.Account) error) error {
			return s.Remove(ctx, service.Name(key), check)
		},
	}
}

// Remove removes an account with its tokens and grants, so that nothing can be done by it any more.
// It returns fault.NotFound if there is none, and the error of check.
func (s *Services) Remove(
	ctx context.Context, name service.Name, check registry.Check[service.Account],
) error {
	return s.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		found, err := s.ports.Services.Get(ctx, name)
		if err == nil {
			err = check.Permit(&found)
		}
		if err == nil {
			err = s.ports.Services.Remove(ctx, name)
		}
		if err != nil {
			return err
		}
		return s.ports.Recorder.RecordChanges(ctx, newServiceChange(&found, nil))
	})
}

// newServiceChange returns the audit event of an account that was made, replaced or removed; one of
// both may be nil.
func newServiceChange(before, after *service.Account) audit.Change {
	var was, is *audit.Object
	if before != nil {
		o := before.Object()
		was = &o
	}
	if after != nil {
		o := after.Object()
		is = &o
	}
	c, _ := audit.Operate(audit.AccountChange, "service", was, is)
	return c
}
