package delegating

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const (
	// maxPermissions bounds the length of a token (contract P-15).
	maxPermissions = 32
	// usedStep is the age of LastUsedAt after which a use renews it.
	usedStep = time.Minute
)

// attempt is one attempt to exchange a proof, for the audit log and for notices.
type attempt struct {
	proof      *publisher.Proof
	address    netip.Addr
	unverified bool   // the ID token could not be verified
	unallowed  bool   // the proof holds, and no policy allows it anything
	service    string // the service account of a workload; empty for a publisher
	policies   []publisher.Policy
}

// admitProof returns what the policies, or a registry that is open to everybody, allow to the
// proof. It records the attempt and the use of each policy in one transaction. It returns
// fault.Unauthenticated, with the reason, if nothing is allowed, or if the proof was used before.
func (p *Prover) admitProof(ctx context.Context, a *attempt, u use) ([]publisher.Permission, error) {
	var permissions []publisher.Permission
	if p.config.Mode == publisher.Open {
		permissions = a.proof.OpenPermissions()
	}
	found, err := p.ports.Policies.Find(ctx, queryFor(a.proof))
	if err != nil {
		return nil, err
	}
	reason, err := p.selectPolicies(ctx, a, found)
	if err != nil {
		return nil, err
	}
	for i := range a.policies {
		permissions = append(permissions, a.policies[i].Permission())
	}
	switch {
	case len(permissions) == 0:
		a.unallowed = true
		return nil, errNotAllowed(a.proof, reason)
	case len(permissions) > maxPermissions:
		return nil, fault.Newf(fault.Unauthenticated, "more than %d policies admit this proof: remove some",
			maxPermissions)
	}
	return permissions, p.recordUse(ctx, a, u)
}

// queryFor selects the policies that may admit a proof.
func queryFor(proof *publisher.Proof) registrystore.PolicyQuery {
	return registrystore.PolicyQuery{Method: proof.Method, Domain: proof.Domain, Issuer: proof.Identity.Issuer}
}

// selectPolicies sets the policies of the attempt: those that admit its proof. Otherwise,
// reason says why a policy that is meant for the proof does not admit it.
func (p *Prover) selectPolicies(ctx context.Context, a *attempt, found []publisher.Policy) (reason string, err error) {
	found = slices.DeleteFunc(found, func(policy publisher.Policy) bool {
		return policy.Compare(a.proof) == publisher.OtherProof
	})
	states, err := p.ports.Checker.States(ctx, found)
	if err != nil {
		return "", err
	}
	now := p.ports.Clock.Now()
	for i := range found {
		mismatch := found[i].Admits(a.proof, now, p.config.UnprovenAfter)
		if mismatch == "" && states[i] == publisher.Expired {
			mismatch = publisher.MakerGone
		}
		if mismatch == "" {
			a.policies = append(a.policies, found[i])
			continue
		}
		reason = fmt.Sprintf("policy %s does not admit it: %s", found[i].ID, mismatch)
	}
	return reason, nil
}

// errNotAllowed returns the error of a proof that holds and is allowed nothing.
func errNotAllowed(proof *publisher.Proof, reason string) error {
	if reason != "" {
		return fault.Newf(fault.Unauthenticated, "the proof of %s holds, but it may publish nothing here: %s",
			proof.Subject(), reason)
	}
	hint := "--method " + string(proof.Method)
	if proof.Method.ByDomain() {
		hint += " --domain " + proof.Domain.String()
	}
	return fault.Newf(fault.Unauthenticated, "the proof of %s holds, but nobody has allowed it to publish here; "+
		"somebody who may publish can allow it, or an operator with: tollgate publisher add %s --pattern PATTERN",
		proof.Subject(), hint)
}

// recordUse stores the use of the policies and records the attempt. A policy that no longer admits
// the proof, because another use has bound it in the meantime, refuses the attempt. The proof is
// used up last, so that one that gives nothing can be repeated.
func (p *Prover) recordUse(ctx context.Context, a *attempt, u use) error {
	now := p.ports.Clock.Now()
	var notices []authority.PublisherNotice
	claimed := false
	err := p.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		notices = nil
		for i := range a.policies {
			first, err := p.usePolicy(ctx, &a.policies[i], a.proof, now)
			if err != nil {
				return err
			}
			if first {
				notices = append(notices, a.newNotice(&a.policies[i], now))
			}
		}
		if err := p.ports.Publishers.RecordProof(ctx, a.event("")); err != nil || claimed {
			return err // the store repeats a transaction that failed after the claim
		}
		err := p.claim(ctx, u)
		claimed = err == nil
		return err
	})
	if err != nil && !claimed {
		a.policies = nil // a refused proof is of no policy
	}
	if err == nil {
		p.notify(notices)
	}
	return err
}

// usePolicy stores the use of a policy, unless the stored one says the same. It reports whether it
// is the first use, or the first with this key.
func (p *Prover) usePolicy(
	ctx context.Context, policy *publisher.Policy, proof *publisher.Proof, now time.Time,
) (first bool, err error) {
	used, first := policy.Use(proof, now)
	if !first && now.Sub(policy.LastUsedAt) < usedStep && policy.GoneSince.IsZero() &&
		(policy.Bound != nil || used.Bound == nil) {
		return false, nil
	}
	err = p.ports.Policies.Update(ctx, policy.ID, func(stored *publisher.Policy) error {
		if m := stored.Admits(proof, now, p.config.UnprovenAfter); m != "" {
			return errNotAllowed(proof, fmt.Sprintf("policy %s does not admit it: %s", policy.ID, m))
		}
		*stored, first = stored.Use(proof, now)
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		return false, errNotAllowed(proof, "")
	}
	return first, err
}

// refuse records that an attempt was refused, notifies the makers of its policies, and returns the
// cause. The record is made even if the caller has cancelled the request. If it cannot be made, its
// error is returned instead of a refusal, because every refusal must be recorded.
func (p *Prover) refuse(ctx context.Context, a *attempt, cause error) error {
	ctx = context.WithoutCancel(ctx)
	kind := fault.KindOf(cause)
	err := p.ports.Publishers.RecordProof(ctx, a.event(fault.PublicMessage(cause)))
	if err != nil && kind != fault.Unavailable && kind != fault.Internal {
		return fmt.Errorf("record a refused proof: %w", err)
	}
	if kind == fault.Unauthenticated && !a.unverified && a.service == "" {
		p.notifyMakers(ctx, a)
	}
	return cause
}

// notifyMakers notifies the makers of the policies for the domain or the repository of a failed
// proof. It does not notify if they cannot be read.
func (p *Prover) notifyMakers(ctx context.Context, a *attempt) {
	found, err := p.ports.Policies.Find(ctx, queryFor(a.proof))
	if err != nil {
		return
	}
	now := p.ports.Clock.Now()
	notified := map[registry.Holder]bool{}
	var notices []authority.PublisherNotice
	for i := range found {
		concerned := a.proof.Method.ByDomain() || found[i].Compare(a.proof) != publisher.OtherProof
		if concerned && !notified[found[i].CreatedBy] {
			notified[found[i].CreatedBy] = true
			notice := a.newNotice(&found[i], now)
			notice.Failed = true
			notices = append(notices, notice)
		}
	}
	p.notify(notices)
}

// notify sends notices to makers. A policy of an operator command has no maker.
func (p *Prover) notify(notices []authority.PublisherNotice) {
	for _, n := range notices {
		if n.Maker != "" {
			p.ports.Publishers.NotifyMaker(n)
		}
	}
}

func (a *attempt) newNotice(policy *publisher.Policy, now time.Time) authority.PublisherNotice {
	return authority.PublisherNotice{
		Maker: string(policy.CreatedBy), Subject: a.proof.Subject(), Pattern: policy.Pattern,
		Address: a.address, At: now,
	}
}

// event returns the attempt for the audit log. reason is empty if it succeeded.
func (a *attempt) event(reason string) authority.ProofAttempt {
	e := authority.ProofAttempt{
		Method: a.proof.Method, Domain: a.proof.Domain.String(), Issuer: a.proof.Identity.Issuer,
		Subject: a.proof.Identity.Subject, Service: a.service,
		Address: a.address, Reason: reason,
	}
	if a.unallowed {
		e.Holds, e.Claims = true, publisher.DescribeClaims(a.proof.Identity.Claims)
	}
	if !a.proof.Key.IsZero() {
		e.Key = a.proof.Key.Fingerprint()
	}
	for i := range a.policies {
		e.Policies = append(e.Policies, a.policies[i].ID)
	}
	return e
}
