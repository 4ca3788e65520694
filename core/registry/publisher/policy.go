package publisher

import (
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Policy says which proof may do what with which servers. NewPolicy makes one.
type Policy struct {
	ID      registry.PolicyID
	Method  Method
	Pattern registry.Pattern
	Actions []Action

	// The proofs that it admits. Domain and Fingerprint are for dns and http, the others for oidc
	// and github-oidc.
	Domain      Domain
	Fingerprint Fingerprint // of the only key that is admitted; the zero value admits every key
	Issuer      string
	Subject     SubjectPattern
	Claims      map[string]string // each must be in the token with this value

	CreatedBy registry.Holder // empty if an operator command created it
	CreatedAt time.Time
	ExpiresAt time.Time // zero if it does not expire
	ManagedBy string    // the owner of the file that manages the policy; empty without one

	LastUsedAt time.Time         // zero before the first use
	UsedKey    string            // the last key that was used (Key.String); empty before the first use
	Bound      map[string]string // claims of the first token, which later tokens must have too
	CheckedAt  time.Time         // when its key was last looked for, or the policy was created
	GoneSince  time.Time         // when its key was first not found; zero while it is there
}

// Object returns the policy as the audit log describes it.
func (p *Policy) Object() audit.Object {
	fields := audit.Details{"method": audit.Text(p.Method), "pattern": audit.Text(p.Pattern.String()),
		"actions": audit.Texts(p.Actions)}
	claims := audit.Details{}
	for name, value := range p.Claims {
		claims[name] = audit.Text(value)
	}
	if len(claims) > 0 {
		fields["claims"] = claims
	}
	for name, text := range map[string]string{
		"domain": p.Domain.String(), "keyFingerprint": p.Fingerprint.String(), "issuer": p.Issuer,
		"subject": p.Subject.String(), "owner": string(p.CreatedBy), "managedBy": p.ManagedBy,
	} {
		fields.Set(name, text)
	}
	if !p.ExpiresAt.IsZero() {
		fields["expiresAt"] = audit.Text(p.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return audit.Object{Kind: "policy", Key: string(p.ID), Fields: fields}
}

// State says whether a policy gives its permission at some time.
type State string

// The states.
const (
	Active   State = "active"
	Unproven State = "unproven" // its key is gone from the domain
	Expired  State = "expired"  // its time is over, or its maker's right
)

// State returns the state of the policy. The key of a domain may be gone for less than
// unprovenAfter. State does not know the maker's right; package delegating does.
func (p *Policy) State(now time.Time, unprovenAfter time.Duration) State {
	switch {
	case !p.ExpiresAt.IsZero() && !now.Before(p.ExpiresAt):
		return Expired
	case !p.GoneSince.IsZero() && now.Sub(p.GoneSince) >= unprovenAfter:
		return Unproven
	}
	return Active
}

// Permission returns the permission that the policy gives.
func (p *Policy) Permission() Permission {
	return Permission{Actions: p.Actions, Pattern: p.Pattern, Policy: p.ID}
}

// Mismatch says why a policy does not admit a proof. The zero value means that it does.
type Mismatch string

// The mismatches.
const (
	OtherProof Mismatch = "it is for another proof"
	OtherKey   Mismatch = "it is pinned to another key"
	// OtherOwner means that the token has the names that the policy selects, and other IDs than the
	// token of its first use: the names belong to somebody else now.
	OtherOwner Mismatch = "the repository or its owner is not the one of the first use"
	Ended      Mismatch = "it has expired"
	// MakerGone is found by package delegating, which knows the makers.
	MakerGone Mismatch = "the person who created it is disabled, or may no longer publish its whole pattern"
	// KeyGone means that the domain had no key of the policy for so long that somebody else may own
	// it now, and that the proof was made with another key.
	KeyGone Mismatch = "the domain had lost the key of the policy, and this is another key"
)

// Admits returns why the policy does not admit a proof at some time, or the zero value if it admits
// it. An unproven policy admits a proof with its own key, which is then there again.
func (p *Policy) Admits(proof *Proof, now time.Time, unprovenAfter time.Duration) Mismatch {
	if m := p.Compare(proof); m != "" {
		return m
	}
	switch state := p.State(now, unprovenAfter); {
	case state == Expired:
		return Ended
	case state == Unproven && !p.FindKey([]Key{proof.Key}, state):
		return KeyGone
	}
	return ""
}

// Compare returns why the policy does not admit a proof, or the zero value if it admits it. The
// state of the policy is not considered.
func (p *Policy) Compare(proof *Proof) Mismatch {
	if p.Method != proof.Method {
		return OtherProof
	}
	if p.Method.ByDomain() {
		switch {
		case p.Domain != proof.Domain:
			return OtherProof
		case !p.Fingerprint.Matches(proof.Key):
			return OtherKey
		}
		return ""
	}
	identity := &proof.Identity
	if p.Issuer != identity.Issuer || !p.Subject.Matches(identity.Subject) || !hasClaims(identity.Claims, p.Claims) {
		return OtherProof
	}
	if !hasClaims(identity.Claims, p.Bound) {
		return OtherOwner
	}
	return ""
}

// hasClaims reports whether a token has all wanted claims, each with exactly the wanted value.
func hasClaims(claims, wanted map[string]string) bool {
	for name, value := range wanted {
		if got, ok := claims[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// Use returns the policy after a use by a proof that it admits, and whether this use is the first,
// or the first with this key. A policy for GitHub that selects a repository or an owner by name is
// bound to their IDs at its first use.
func (p Policy) Use(proof *Proof, now time.Time) (used Policy, first bool) {
	first = p.LastUsedAt.IsZero() || p.UsedKey != usedKey(proof)
	p.LastUsedAt, p.UsedKey = now, usedKey(proof)
	if p.Method.ByDomain() {
		p.GoneSince = time.Time{} // the key was just seen
	}
	if p.Method == GitHubOIDC && len(p.Bound) == 0 {
		p.Bound = selectClaims(proof.Identity.Claims, p.boundClaims())
	}
	return p, first
}

// usedKey returns the key of a proof; empty for an ID token.
func usedKey(proof *Proof) string {
	if proof.Key.IsZero() {
		return ""
	}
	return proof.Key.String()
}

// FindKey reports whether a domain still has the key of the policy among its published keys. That
// is the pinned key, or any key while the policy is proven or was never used; an unproven policy
// needs the key of its last use, because the domain may belong to somebody else by now.
func (p *Policy) FindKey(published []Key, state State) bool {
	return slices.ContainsFunc(published, func(k Key) bool {
		if !p.Fingerprint.Matches(k) {
			return false
		}
		return state != Unproven || p.Fingerprint != (Fingerprint{}) || p.UsedKey == "" || p.UsedKey == k.String()
	})
}

// Checked returns the policy after its key was looked for.
func (p Policy) Checked(found bool, now time.Time) Policy {
	switch {
	case found:
		p.GoneSince = time.Time{}
	case p.GoneSince.IsZero():
		p.GoneSince = now
	}
	p.CheckedAt = now
	return p
}
