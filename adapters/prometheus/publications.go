package prometheus

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

const (
	publicationDone    = "done"
	publicationPending = "pending" // the document waits for review
)

// refusals contains the outcome of each kind of refused change.
var refusals = map[fault.Kind]string{
	fault.Invalid:         "invalid",
	fault.Unauthenticated: "unauthenticated",
	fault.Forbidden:       "forbidden",
	fault.NotFound:        "not_found",
	fault.Conflict:        "conflict",
	fault.Stale:           "stale",
	fault.Exhausted:       "exhausted",
	fault.Unsupported:     "unsupported",
}

// Publisher counts the outcomes of changes of the registry, and passes the calls on.
type Publisher struct {
	*publishing.Publisher
	outcomes map[string]labelCounters // by operation
}

// NewPublisher returns a publisher whose outcomes are counted.
func NewPublisher(p *publishing.Publisher, r Registerers) *Publisher {
	vector := newCounters(r.Registry, "tollgate_publications_total",
		"Requested changes of the registry, by their outcome.", "operation", "outcome")
	operations := []string{
		string(publishing.OpPublish), string(publishing.OpReplace), string(publishing.OpDelete),
		string(publishing.OpStatus), string(publishing.OpTools),
	}
	outcomes := []string{publicationDone, publicationPending, unavailable, failed}
	for _, refusal := range refusals {
		outcomes = append(outcomes, refusal)
	}
	return &Publisher{Publisher: p, outcomes: newTable(vector, operations, outcomes)}
}

// Refuse counts a change that is refused before it is known who makes it, and returns the error.
func (p *Publisher) Refuse(of publishing.Operation, err error) error {
	if err != nil {
		p.countOutcome(of, err)
	}
	return err
}

// Publish publishes a version and counts the outcome.
func (p *Publisher) Publish(
	ctx context.Context, who authority.Caller, r publishing.Request,
) (publishing.Outcome, error) {
	outcome, err := p.Publisher.Publish(ctx, who, r)
	p.countDocument(publishing.OpPublish, outcome, err)
	return outcome, err
}

// Replace replaces the document of a version and counts the outcome.
func (p *Publisher) Replace(
	ctx context.Context, who authority.Caller, r publishing.Request, t publishing.Target,
) (publishing.Outcome, error) {
	outcome, err := p.Publisher.Replace(ctx, who, r, t)
	p.countDocument(publishing.OpReplace, outcome, err)
	return outcome, err
}

// Delete deletes a version and counts the outcome.
func (p *Publisher) Delete(
	ctx context.Context, who authority.Caller, r publishing.Request, t publishing.Target,
) (registry.Record, error) {
	record, err := p.Publisher.Delete(ctx, who, r, t)
	p.countOutcome(publishing.OpDelete, err)
	return record, err
}

// SetStatus changes the status of a version and counts the outcome.
func (p *Publisher) SetStatus(
	ctx context.Context, who authority.Caller, r publishing.Request, t publishing.Target,
) (registry.Record, error) {
	record, err := p.Publisher.SetStatus(ctx, who, r, t)
	p.countOutcome(publishing.OpStatus, err)
	return record, err
}

// SetStatusAll changes the status of all versions of a server and counts one outcome.
func (p *Publisher) SetStatusAll(
	ctx context.Context, who authority.Caller, r publishing.Request, serverName string, room publishing.SizeCheck,
) (history.History, error) {
	changed, err := p.Publisher.SetStatusAll(ctx, who, r, serverName, room)
	p.countOutcome(publishing.OpStatus, err)
	return changed, err
}

// RecordTools stores a tool list and counts the outcome.
func (p *Publisher) RecordTools(
	ctx context.Context, who authority.Caller, body []byte, t publishing.Target,
) (publishing.RecordedTools, error) {
	recorded, err := p.Publisher.RecordTools(ctx, who, body, t)
	p.countOutcome(publishing.OpTools, err)
	return recorded, err
}

// countDocument counts the outcome of a document, which may wait for review.
func (p *Publisher) countDocument(operation publishing.Operation, o publishing.Outcome, err error) {
	if err == nil && o.Pending != "" {
		p.outcomes[string(operation)].increment(publicationPending)
		return
	}
	p.countOutcome(operation, err)
}

func (p *Publisher) countOutcome(operation publishing.Operation, err error) {
	p.outcomes[string(operation)].increment(publicationOutcome(err))
}

func publicationOutcome(err error) string {
	if err == nil {
		return publicationDone
	}
	if refusal, ok := refusals[fault.KindOf(err)]; ok {
		return refusal
	}
	return failureLabel(err)
}

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
	vector := newCounters(r.Registry, "tollgate_publisher_proofs_total",
		"Proofs of publishers, by method and outcome.", "method", "outcome")
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
