package publisher

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// The details of an audit event of a proof by which Refused reads it.
const (
	DetailHolds  = "holds" // the proof holds, and no policy allows it anything
	DetailClaims = "claims"
)

// describedClaims are the claims that describe a CI job, and no person. The audit log has them.
var describedClaims = []string{
	claimRepository, claimRepositoryID, claimOwner, claimOwnerID, "job_workflow_ref", "environment", "ref",
	claimProject, "project_id", claimNamespace, "ref_type",
}

// The claims of GitLab that name a project and its group.
const (
	claimProject   = "project_path"
	claimNamespace = "namespace_path"
)

// DescribeClaims returns the claims of an ID token that the audit log has, as far as a policy could
// name them.
func DescribeClaims(claims map[string]string) map[string]string {
	described := selectClaims(claims, describedClaims)
	for name, value := range described {
		if checkClaims(map[string]string{name: value}) != nil {
			delete(described, name)
		}
	}
	return described
}

// Refused is a proof that held and was refused, because no one had allowed it.
type Refused struct {
	audit.Event

	// Draft has what a policy would have that admits the proof. Its pattern is a suggestion; it may be
	// empty.
	Draft Draft
}

// ReadRefused returns the refused proof of an audit event. It reports false for another event, also
// for a proof that did not hold: anybody can send one.
func ReadRefused(e audit.Event) (Refused, bool) {
	method, err := ParseMethod(e.Details.Text("method"))
	if err != nil || e.Success || e.Details.Text(DetailHolds) != "true" || e.Details.Text("service") != "" {
		return Refused{}, false
	}
	r := Refused{e, Draft{
		Method: string(method), Domain: e.Details.Text("domain"), KeyFingerprint: e.Details.Text("keyFingerprint"),
		Issuer: e.Details.Text("issuer"), Subject: e.Details.Text("subject"), Claims: map[string]string{},
	}}
	if claims, ok := e.Details[DetailClaims].(audit.Details); ok {
		for name := range claims {
			r.Draft.Claims[name] = claims.Text(name)
		}
	}
	return r, true
}

// Same reports whether both are proofs of one domain with one key, or of one job.
func (r *Refused) Same(other *Refused) bool {
	a, b := &r.Draft, &other.Draft
	return a.Method == b.Method && a.Domain == b.Domain && a.KeyFingerprint == b.KeyFingerprint &&
		a.Issuer == b.Issuer && a.Subject == b.Subject
}

// Concerns reports whether the proof concerns somebody who may publish what the grants select and who
// sees the policies, and sets the pattern of the draft. A proof concerns the names that it proves, and
// those of a policy for the same owner at the same issuer. It concerns who may publish everything, and
// no one when one of the policies admits it now.
func (r *Refused) Concerns(grants []registry.Pattern, policies []Policy) bool {
	proof := Proof{Method: Method(r.Draft.Method), Identity: Identity{r.Draft.Issuer, r.Draft.Subject, r.Draft.Claims}}
	proof.Domain, _ = ParseDomain(r.Draft.Domain)
	if r.isAdmitted(policies) {
		return false
	}
	for _, proven := range proof.provenPatterns() {
		for _, g := range grants {
			switch {
			case g.Covers(proven):
				r.Draft.Pattern = proven.String()
				return true
			case proven.Covers(g):
				r.Draft.Pattern = g.String()
				return true
			}
		}
	}
	if i := slices.IndexFunc(policies, func(p Policy) bool { return p.isRelated(&proof) }); i >= 0 {
		r.Draft.Pattern = policies[i].Pattern.String()
		return true
	}
	return slices.ContainsFunc(grants, func(g registry.Pattern) bool { return g.String() == "*" })
}

// isAdmitted reports whether one of the policies admits such a proof now.
func (r *Refused) isAdmitted(policies []Policy) bool {
	identity := Identity{r.Draft.Issuer, r.Draft.Subject, r.Draft.Claims}
	return slices.ContainsFunc(policies, func(p Policy) bool {
		if p.Method.ByDomain() {
			return string(p.Method) == r.Draft.Method && p.Domain.String() == r.Draft.Domain &&
				(p.Fingerprint.value == "" || strings.HasPrefix(p.Fingerprint.value, r.Draft.KeyFingerprint))
		}
		return p.Compare(&Proof{Method: Method(r.Draft.Method), Identity: identity}) == ""
	})
}

// isRelated reports whether a policy is for the owner of a job at the same issuer. An owner with the
// same name and another ID is somebody else.
func (p *Policy) isRelated(proof *Proof) bool {
	claims := proof.Identity.Claims
	if p.Method != proof.Method || p.Method.ByDomain() || p.Issuer != proof.Identity.Issuer {
		return false
	}
	for _, known := range []map[string]string{p.Claims, p.Bound} {
		if id := known[claimOwnerID]; id != "" {
			return id == claims[claimOwnerID]
		}
	}
	owner := ownerOf(p.Subject.value, p.Claims)
	return owner != "" && owner == ownerOf(proof.Identity.Subject, claims)
}

// ownerOf returns the owner of a job by its claims, or else by its subject: acme for
// repo:acme/tools:ref:refs/heads/main, system:serviceaccount:build for system:serviceaccount:build:ci.
// It is empty if it is not known.
func ownerOf(subject string, claims map[string]string) string {
	for _, name := range []string{claimOwner, claimRepository, claimNamespace, claimProject} {
		if owner, _, _ := strings.Cut(claims[name], "/"); owner != "" {
			return owner
		}
	}
	if path, _, slash := strings.Cut(subject, "/"); slash {
		_, owner, _ := strings.Cut(path, ":")
		return owner
	}
	return subject[:max(strings.LastIndex(subject, ":"), 0)]
}
