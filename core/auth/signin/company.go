package signin

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
)

// Company is a person whom a provider has signed in.
type Company struct {
	Account auth.Account
	Login   auth.CompanyLogin
	// Proof is where the person was signed in, for the audit log.
	Proof company.Proof
	// SecondFactor reports that the provider has checked a second factor.
	SecondFactor bool
}

// StartCompany begins a session for the person whom admit returns, in one transaction with admit. It
// counts as a right password (contract A-70): a person with an authenticator must enter a code then,
// unless the provider has checked a second factor. It ignores the lock after failures. It returns the
// error of admit, which may be called more than once.
func (s *Service) StartCompany(
	ctx context.Context, from Origin, admit func(ctx context.Context) (Company, error),
) (Result, error) {
	attempt := loginAttempt{accountKnown: true}
	return s.atomically(ctx, from, &attempt, func(ctx context.Context) (step, error) {
		person, err := admit(ctx)
		if err != nil {
			return step{}, err
		}
		attempt.account, attempt.identity = person.Account, s.deviceIdentity(from.Device, person.Account.ID)
		attempt.company, attempt.proof = person.Login, person.Proof
		attempt.subject = companyLockout(person.Account.ID)
		if err := s.loadDevice(ctx, &attempt, from.DeviceToken); err != nil {
			return step{}, err
		}
		now := s.ports.Clock.Now()
		if person.SecondFactor {
			attempt.factor = auth.FactorCompany
			return s.startSession(ctx, from, &attempt, now)
		}
		mfaRequired, err := s.needsSecondFactor(ctx, from, &attempt, now)
		if err != nil {
			return step{}, err
		}
		if mfaRequired {
			return step{Result: Result{UserID: attempt.account.ID, MFARequired: true}},
				s.newPendingLogin(ctx, from, &attempt, now)
		}
		return s.startSession(ctx, from, &attempt, now)
	})
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
