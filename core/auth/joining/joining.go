// Package joining accepts the links by which people make the first account, accept an invitation and
// set another password, and takes the requests of those who forgot theirs. Package people makes the
// links. A link is used up by an act only, not by opening its page: scanners of mail open pages.
package joining

import (
	"context"
	"sync/atomic"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Ports are the dependencies of this package. All stores belong to one adapter, so that a
// transaction spans them.
type Ports struct {
	Accounts    authstore.Accounts
	Links       authstore.Links
	Transaction transaction.Runner

	People   *people.Service
	SignIn   *signin.Service
	Notices  *notices.Notifier
	Cache    sessioncache.Cache
	Throttle throttle.Throttle
	Reporter report.Reporter
	Clock    clock.Clock
}

// Service accepts links. It is safe for concurrent use.
type Service struct {
	ports     Ports
	forgotten chan auth.Email
	settled   atomic.Bool // there is an account, which no one can remove
}

// New returns a service.
func New(p Ports) *Service {
	return &Service{ports: p, forgotten: make(chan auth.Email, queueCapacity)}
}

// errDead is the error for a link that is unknown, used, expired, or of another purpose.
func errDead() error { return auth.NotFound("link") }

// IsEmpty reports whether there is no account yet.
func (s *Service) IsEmpty(ctx context.Context) (bool, error) {
	if s.settled.Load() {
		return false, nil
	}
	err := s.ports.People.CheckEmpty(ctx)
	if fault.Is(err, fault.Conflict) {
		s.settled.Store(true)
		return false, nil
	}
	return err == nil, err
}

// find returns a link that is good for a purpose.
func (s *Service) find(ctx context.Context, secret auth.LinkSecret, purpose auth.LinkPurpose) (auth.Link, error) {
	l, err := s.ports.Links.Find(ctx, auth.HashSecret(secret))
	switch {
	case fault.Is(err, fault.NotFound):
		return auth.Link{}, errDead()
	case err == nil && (l.Purpose != purpose || !s.ports.Clock.Now().Before(l.ExpiresAt)):
		return auth.Link{}, errDead()
	}
	return l, err
}

// take uses a link up. Of parallel calls, one succeeds.
func (s *Service) take(ctx context.Context, l auth.Link) error {
	err := s.ports.Links.Take(ctx, l.Hash)
	if fault.Is(err, fault.NotFound) {
		return errDead()
	}
	return err
}

// CheckSetup returns fault.NotFound unless a setup code is good, which it is until there is an
// account.
func (s *Service) CheckSetup(ctx context.Context, code auth.LinkSecret) error {
	_, err := s.findSetup(ctx, code)
	return err
}

func (s *Service) findSetup(ctx context.Context, code auth.LinkSecret) (auth.Link, error) {
	empty, err := s.IsEmpty(ctx)
	if err != nil {
		return auth.Link{}, err
	}
	if !empty {
		return auth.Link{}, errDead()
	}
	return s.find(ctx, code, auth.LinkSetup)
}

// SetUp makes the first account, which may do everything, and begins a session at FULL_TRUST. Of
// parallel calls, also with different codes, one succeeds. The error is that of CheckSetup, and of
// people.Service.Add for rules.
func (s *Service) SetUp(
	ctx context.Context, code auth.LinkSecret, p people.Person, from signin.Origin,
) (signin.Result, error) {
	l, err := s.findSetup(ctx, code)
	if err != nil {
		return signin.Result{}, err
	}
	account, err := s.ports.People.NewAccount(ctx, p)
	if err != nil {
		return signin.Result{}, err
	}
	return s.ports.SignIn.Start(ctx, from, func(ctx context.Context) (signin.Admitted, error) {
		err := s.take(ctx, l)
		if err == nil {
			err = s.ports.People.AddFirst(ctx, account)
		}
		if fault.Is(err, fault.Conflict) {
			err = errDead()
		}
		return signin.Admitted{Account: account, Factor: auth.FactorLink}, err
	})
}

// FindInvited returns the person of an invitation. It returns fault.NotFound unless the invitation
// is good, and the error of signin.Service.CheckInvited.
func (s *Service) FindInvited(ctx context.Context, secret auth.LinkSecret) (auth.Account, error) {
	_, a, err := s.findInvitation(ctx, secret)
	return a, err
}

func (s *Service) findInvitation(ctx context.Context, secret auth.LinkSecret) (auth.Link, auth.Account, error) {
	l, a, err := s.findPerson(ctx, secret, auth.LinkInvitation)
	if err == nil && a.State != auth.AccountInvited {
		err = errDead()
	}
	if err == nil {
		err = s.ports.SignIn.CheckInvited(ctx, &a)
	}
	return l, a, err
}

// findPerson returns a link of a person, and the person.
func (s *Service) findPerson(
	ctx context.Context, secret auth.LinkSecret, purpose auth.LinkPurpose,
) (l auth.Link, a auth.Account, err error) {
	if l, err = s.find(ctx, secret, purpose); err == nil {
		a, err = s.ports.Accounts.Get(ctx, l.UserID)
	}
	return l, a, err
}

// Accept sets the password of an invited person, and begins a session at FULL_TRUST. The error is
// that of FindInvited, and fault.Invalid if the password breaks a rule.
func (s *Service) Accept(
	ctx context.Context, secret auth.LinkSecret, p auth.Password, from signin.Origin,
) (signin.Result, error) {
	l, account, err := s.findInvitation(ctx, secret)
	if err != nil {
		return signin.Result{}, err
	}
	hash, err := s.ports.People.HashPassword(ctx, "password", p, &account)
	if err != nil {
		return signin.Result{}, err
	}
	return s.ports.SignIn.Start(ctx, from, func(ctx context.Context) (signin.Admitted, error) {
		err := s.take(ctx, l)
		if err == nil {
			account, err = s.ports.People.AcceptInvitation(ctx, account.Email, hash)
		}
		return signin.Admitted{Account: account, Factor: auth.FactorLink}, err
	})
}
