package signin

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
)

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
