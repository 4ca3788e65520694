package federating

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// sealing is what a sealed secret is about. A secret is given for one issuer: sealed with it, it cannot be
// read for another one, whichever path has changed the issuer. Earlier versions have sealed secrets
// without it (old); they are read, and sealed anew by resealAll and at the next check of a session.
type sealing struct{ about, old string }

// providerSeal returns what the secret of a client is about.
func providerSeal(p *company.Provider) sealing {
	old := "company provider " + string(p.Name)
	return sealing{old + " " + p.ClientID + " " + p.Issuer, old}
}

// refreshSeal returns what the refresh token of a login is about.
func refreshSeal(id company.LoginID, issuer string) sealing {
	old := "company refresh " + string(id)
	return sealing{old + " " + issuer, old}
}

// openSealed returns a sealed secret, and whether it was sealed without its issuer.
func openSealed(s secrets.Sealer, sealed auth.SealedSecret, of sealing) (secret []byte, old bool, err error) {
	if secret, err = s.Open(sealed, of.about); err == nil {
		return secret, false, nil
	}
	secret, err = s.Open(sealed, of.old)
	return secret, err == nil, err
}

// resealAfter is how long after its start an instance seals secrets anew: then none of an earlier version
// runs any more, which could not read them.
const resealAfter = 10 * time.Minute

// resealAll seals the secrets of providers anew that are sealed without their issuers.
func (s *Service) resealAll(ctx context.Context) error {
	return s.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		all, err := s.ports.Providers.List(ctx)
		for i := 0; i < len(all) && err == nil; i++ {
			p := &all[i]
			secret, old, unreadable := openSealed(s.ports.Sealer, p.Secret, providerSeal(p))
			if len(p.Secret) == 0 || unreadable != nil || !old { // one of another key is set again by an operator
				continue
			}
			if p.Secret, err = s.ports.Sealer.Seal(secret, providerSeal(p).about); err == nil {
				err = s.ports.Providers.Save(ctx, *p)
			}
		}
		return err
	})
}
