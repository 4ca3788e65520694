package prometheus

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

const (
	proofAccepted = "accepted"
	proofRefused  = "refused"
	proofLimited  = "limited"
	proofInvalid  = "invalid"
)

// Prover counts the outcomes of proofs of publishers, and passes the calls on.
type Prover struct {
	*delegating.Prover
	outcomes map[string]labelCounters // by method
}

// NewProver returns a prover whose outcomes are counted.
func NewProver(p *delegating.Prover, r Registerers) *Prover {
	vector := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tollgate_publisher_proofs_total",
		Help: "Proofs of publishers, by method and outcome.",
	}, []string{"method", "outcome"})
	r.Registry.MustRegister(vector)
	methods := []string{
		string(publisher.DNS), string(publisher.HTTP), string(publisher.OIDC), string(publisher.GitHubOIDC),
	}
	return &Prover{Prover: p, outcomes: newTable(vector, methods, []string{
		proofAccepted, proofRefused, proofLimited, proofInvalid, unavailable, failed,
	})}
}

// ProveDomain exchanges a proof of a domain and counts the outcome.
func (p *Prover) ProveDomain(ctx context.Context, r delegating.DomainRequest) (delegating.Token, error) {
	t, err := p.Prover.ProveDomain(ctx, r)
	p.countOutcome(r.Method, err)
	return t, err
}

// ProveIdentity exchanges an ID token and counts the outcome.
func (p *Prover) ProveIdentity(ctx context.Context, r delegating.IdentityRequest) (delegating.Token, error) {
	t, err := p.Prover.ProveIdentity(ctx, r)
	p.countOutcome(r.Method, err)
	return t, err
}

func (p *Prover) countOutcome(m publisher.Method, err error) {
	p.outcomes[string(m)].increment(proofOutcome(err))
}

func proofOutcome(err error) string {
	if err == nil {
		return proofAccepted
	}
	switch fault.KindOf(err) {
	case fault.Unauthenticated:
		return proofRefused
	case fault.Exhausted:
		return proofLimited
	case fault.Invalid, fault.NotFound:
		return proofInvalid
	}
	return failureLabel(err)
}
