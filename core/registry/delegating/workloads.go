package delegating

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// WorkloadRequest is an ID token of a workload of a service account, as it was sent.
type WorkloadRequest struct {
	Client
	Service string
	Token   string
}

// ProveWorkload returns a token of a service account for an ID token that one of its workloads
// admits. The rules are those of proofs of publishers: the issuer is configured, and the ID token is
// used once. Each attempt is recorded.
//
// Errors: fault.Exhausted over a limit, fault.Unauthenticated for an account that does not exist or
// is disabled and an ID token that does not hold or that no workload admits, fault.NotFound if the
// service accepts no ID tokens, fault.Unavailable when the keys of the issuer cannot be read or a
// dependency fails.
func (p *Prover) ProveWorkload(ctx context.Context, r WorkloadRequest) (Token, error) {
	if err := p.countAttempt(ctx, throttle.PublisherAddress, r.Key); err != nil {
		return Token{}, err
	}
	a := &attempt{proof: &publisher.Proof{Method: publisher.OIDC}, address: r.Address, service: r.Service}
	token, err := p.exchangeWorkload(ctx, a, r.Token)
	if err != nil {
		return Token{}, p.refuse(ctx, a, err)
	}
	return token, nil
}

// exchangeWorkload returns a token for an ID token. The ID token is used up last.
func (p *Prover) exchangeWorkload(ctx context.Context, a *attempt, token string) (Token, error) {
	account, err := p.findService(ctx, a.service)
	if err != nil {
		return Token{}, err
	}
	verified, w, err := p.findWorkload(ctx, &account, token)
	a.proof.Identity = verified.Identity
	if err != nil {
		return Token{}, err
	}
	a.proof.Method = w.Identity.Method
	var got Token
	claimed := false
	err = p.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		if err := p.ports.Publishers.RecordProof(ctx, a.event("")); err != nil {
			return err
		}
		got.Text, got.ExpiresAt, err = p.ports.Publishers.IssueServiceToken(ctx, string(account.Name), w.Scopes)
		if fault.Is(err, fault.NotFound) {
			return errNoWorkload()
		}
		if err != nil || claimed {
			return err // the store repeats a transaction that failed after the claim
		}
		err = p.claim(ctx, p.useOf(verified))
		claimed = err == nil
		return err
	})
	return got, err
}

// errNoWorkload does not say whether the account exists.
func errNoWorkload() error {
	return fault.New(fault.Unauthenticated, "no workload of this service account admits the token")
}

func (p *Prover) findService(ctx context.Context, text string) (service.Account, error) {
	name, err := service.ParseName(text)
	if err != nil {
		return service.Account{}, errNoWorkload()
	}
	account, err := p.ports.Services.Get(ctx, name)
	if fault.Is(err, fault.NotFound) || err == nil && account.State != service.Active {
		err = errNoWorkload()
	}
	return account, err
}

// findWorkload returns the first workload of an account that admits a token, and what the token
// says. Otherwise it returns why the last one does not admit it.
func (p *Prover) findWorkload(
	ctx context.Context, account *service.Account, token string,
) (verified identity.Token, _ *service.Workload, err error) {
	refused := errNoWorkload()
	for i := range account.Workloads {
		w := &account.Workloads[i]
		var audience []string
		if w.Audience != "" {
			audience = []string{w.Audience}
		}
		found, err := p.ports.Identities.Verify(ctx, w.Identity.Method, token, audience...)
		if verified.Issuer == "" || err == nil {
			verified = found
		}
		switch {
		case err == nil && w.Admits(found.Identity):
			return found, w, nil
		case err == nil:
			refused = errNoWorkload()
		case fault.Is(err, fault.Unauthenticated):
			refused = err
		case err != nil:
			return verified, nil, err
		}
	}
	return verified, nil, refused
}
