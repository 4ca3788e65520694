package signin

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// checkPasswordAllowed returns fault.Forbidden with code company_sign_in_required if people with the
// domain of the e-mail address sign in at their company only, whether or not there is an account, or
// if no password is accepted (contract A-77). It reports whether an operator command has admitted the
// person all the same.
func (s *Service) checkPasswordAllowed(ctx context.Context, in Login) (admitted bool, err error) {
	all, err := s.ports.Providers.List(ctx)
	if err != nil {
		return false, err
	}
	p := company.Enforcing(all, in.Email)
	if p == nil && !s.config.PasswordsOff {
		return false, nil
	}
	account, err := s.ports.Accounts.ByEmail(ctx, in.Email)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	if account.State.HasSignIn() && s.ports.Clock.Now().Before(account.AdmittedUntil) {
		return true, nil
	}
	change := newRefusal(in.Origin, &loginAttempt{}, auth.CodeCompanyOnly)
	if err := s.ports.Trail.RecordChanges(ctx, change); err != nil {
		return false, err
	}
	return false, errCompanyOnly(p)
}

// CheckInvited returns fault.Forbidden with code company_sign_in_required if an invited person signs in at
// their company only, where the first sign-in accepts the invitation. People who may operate do not: a
// company sign-in leads to none of them before they have linked it (contract A-74).
func (s *Service) CheckInvited(ctx context.Context, a *auth.Account) error {
	all, err := s.ports.Providers.List(ctx)
	if err != nil {
		return err
	}
	p := company.Enforcing(all, a.Email)
	if p == nil {
		return nil
	}
	operates, err := s.ports.Grants.MayOperate(ctx, string(a.ID))
	if err != nil || operates {
		return err
	}
	return errCompanyOnly(p)
}

func errCompanyOnly(p *company.Provider) error {
	if p == nil {
		return fault.New(fault.Forbidden, "sign in at your company").WithCode(auth.CodeCompanyOnly)
	}
	return fault.New(fault.Forbidden, "sign in at your company: "+p.DisplayName).WithCode(auth.CodeCompanyOnly).
		WithDetail("provider", jsonvalue.Text(p.Name))
}

// notifyOperators sends every operator a notice that a person whom a command has admitted signs in
// with a password. Errors are ignored: notices are best effort.
func (s *Service) notifyOperators(ctx context.Context, from Origin) {
	operators, _ := s.ports.Grants.Operators(ctx) // see above
	agent := parseUserAgent(from.Device.UserAgent())
	for _, id := range operators {
		s.ports.Notices.Notify(notices.Event{
			Kind: notices.BreakGlass, UserID: auth.UserID(id), At: s.ports.Clock.Now(), Address: from.Address,
			Browser: agent.browser, OS: agent.os,
		})
	}
}

// companyLockout is the subject of wrong codes after a company sign-in. It is not that of passwords,
// whose lock does not concern who signs in at the company.
func companyLockout(user auth.UserID) auth.LockoutKey {
	return auth.LockoutKey("company:" + string(user))
}

// RecordRefusal records that somebody whom a provider has signed in was refused, with the reason.
// The user is empty if no account is known.
func (s *Service) RecordRefusal(ctx context.Context, from Origin, user auth.UserID, p company.Proof, reason string) error {
	details := audit.Details{"reason": audit.Text(reason)}
	auth.DescribeAddress(details, from.Address)
	p.Describe(details)
	return s.ports.Trail.RecordChanges(ctx, audit.Change{
		Category: audit.LoginAttempt, Subject: audit.Subject(user), Failed: true, Details: details,
	})
}
