package joining

import (
	"context"
	"sync"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// CheckReset returns fault.NotFound unless a link to set another password is good.
func (s *Service) CheckReset(ctx context.Context, secret auth.LinkSecret) error {
	_, _, err := s.findReset(ctx, secret)
	return err
}

func (s *Service) findReset(ctx context.Context, secret auth.LinkSecret) (auth.Link, auth.Account, error) {
	l, a, err := s.findPerson(ctx, secret, auth.LinkReset)
	if err == nil && !a.State.HasSignIn() {
		err = errDead()
	}
	return l, a, err
}

// Reset sets another password, and ends all sessions of the person and the logins that wait for a
// second factor, which stays. All links of the person to set a password are dead after it. The error
// is that of CheckReset, and fault.Invalid if the password breaks a rule.
func (s *Service) Reset(ctx context.Context, secret auth.LinkSecret, p auth.Password) error {
	l, account, err := s.findReset(ctx, secret)
	if err != nil {
		return err
	}
	hash, err := s.ports.People.HashPassword(ctx, "newPassword", p, &account)
	if err != nil {
		return err
	}
	ended, err := transaction.Do(ctx, s.ports.Transaction, func(ctx context.Context) ([]auth.SessionID, error) {
		if err := s.take(ctx, l); err != nil {
			return nil, err
		}
		return s.ports.People.ResetPassword(ctx, account.Email, hash)
	})
	if err != nil {
		return err
	}
	s.ports.Cache.Drop(ctx, ended...)
	s.ports.Notices.Notify(notices.Event{Kind: notices.PasswordChanged, UserID: l.UserID, At: s.ports.Clock.Now()})
	return nil
}

// queueCapacity is the number of requests that wait; more are dropped.
const queueCapacity = 1000

// forgottenKind names the messages of forgotten passwords in logs and metrics.
const forgottenKind notices.Kind = "forgotten_password"

// Forgot requests a link to set another password, and returns at once: that an address has an
// account shows neither in what it does nor in the time that it takes. Run sends the link.
func (s *Service) Forgot(email auth.Email) {
	select {
	case s.forgotten <- email:
	default:
		s.ports.Reporter.Report(notices.Dropped{Count: 1})
	}
}

// CanMail reports whether links can be sent to people.
func (s *Service) CanMail() bool { return s.ports.People.CanMail() }

// workers is the number of links that are sent at the same time.
const workers = 4

// Run sends the links of forgotten passwords until the context ends.
func (s *Service) Run(ctx context.Context) {
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { s.runWorker(ctx) })
	}
	group.Wait()
}

func (s *Service) runWorker(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case email := <-s.forgotten:
			if err := s.sendReset(ctx, email); err != nil {
				s.ports.Reporter.Report(notices.Failed{Kind: forgottenKind, Err: err})
			}
		}
	}
}

// sendReset sends a person a link, at most three times an hour to an address. It counts an address
// without sign-in too, and sends nothing to it.
func (s *Service) sendReset(ctx context.Context, email auth.Email) error {
	if !s.CanMail() {
		return nil
	}
	v, err := s.ports.Throttle.Try(ctx, throttle.ResetAddress, s.ports.People.CountingKey(email))
	if err != nil || !v.Allowed && !v.Unlimited {
		return err
	}
	switch err := s.ports.People.SendResetLink(ctx, email); {
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Conflict):
	case err != nil:
		return err
	default:
		s.ports.Reporter.Report(notices.Sent{Kind: forgottenKind})
	}
	return nil
}
