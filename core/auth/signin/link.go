package signin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
)

// Admitted is a person who gets a session without a password.
type Admitted struct {
	Account auth.Account
	Factor  auth.Factor     // what the person has shown; empty for nothing that counts as a second factor
	Most    auth.TrustLevel // that the session gets; zero without a limit
	// Login is the sign-in at a provider from which the session comes, to be stored with it, and Until
	// is when the session ends at the latest; zero without one.
	Login company.Login
	Until time.Time
	// Proof is where a provider has just signed the person in, for the audit log.
	Proof company.Proof
}

// Admit returns the person who gets a session, in the transaction of the context. It may be called
// more than once.
type Admit func(ctx context.Context) (Admitted, error)

// Start begins a session for the person whom admit returns, in one transaction with admit. Score and
// cap hold as after a password, but after auth.FactorLink the session is at FULL_TRUST and its device
// confirmed, as after a step-up, so admit must take a link that only the person has. A person whom a
// provider has just signed in must enter a code as after a right password (contract A-70), unless the
// provider has checked a second factor, which is auth.FactorCompany. The lock after failures does not
// count. Start returns the error of admit, and fault.Unavailable if the database is not available.
func (s *Service) Start(ctx context.Context, from Origin, admit Admit) (Result, error) {
	attempt := loginAttempt{accountKnown: true}
	return s.atomically(ctx, from, &attempt, func(ctx context.Context) (step, error) {
		person, err := admit(ctx)
		if err != nil {
			return step{}, err
		}
		attempt.account, attempt.identity = person.Account, s.deviceIdentity(from.Device, person.Account.ID)
		attempt.factor, attempt.most, attempt.login, attempt.proof = person.Factor, person.Most, person.Login, person.Proof
		attempt.company = auth.CompanyLogin{ID: string(person.Login.ID), Until: person.Until}
		if err := s.loadDevice(ctx, &attempt, from.DeviceToken); err != nil {
			return step{}, err
		}
		if person.Proof.Provider != "" {
			attempt.subject = companyLockout(person.Account.ID)
			return s.startOrWait(ctx, from, &attempt)
		}
		done, err := s.startSession(ctx, from, &attempt, s.ports.Clock.Now())
		done.newDevice = done.newDevice && attempt.factor != auth.FactorLink
		return done, err
	})
}
