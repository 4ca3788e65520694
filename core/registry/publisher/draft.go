package publisher

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Draft is a policy as its maker writes it; empty fields were left out.
type Draft struct {
	Method         string
	Pattern        string
	Actions        []string
	Domain         string
	KeyFingerprint string
	Issuer         string
	Subject        string
	Claims         map[string]string
	ExpiresAt      time.Time
	// Owner and ManagedBy are of operators. Owner is a person who holds a grant over the pattern,
	// on which the policy then depends; empty for no one.
	Owner     registry.Holder
	ManagedBy string
}

// Rules are what a service accepts in policies.
type Rules struct {
	Issuers      []string           // for oidc
	GitHubIssuer string             // for github-oidc
	Reserved     []registry.Pattern // names that no one may publish
}

// NewPolicy returns the policy of a draft, without ID and maker. It returns fault.Invalid with the
// name of the field if one is wrong (contract P-11).
func NewPolicy(d Draft, r Rules, now time.Time) (Policy, error) {
	p := Policy{CreatedAt: now, ExpiresAt: d.ExpiresAt, CheckedAt: now, ManagedBy: d.ManagedBy}
	var err error
	if p.Method, err = ParseMethod(d.Method); err != nil {
		return Policy{}, fault.In("method", err)
	}
	if p.Pattern, err = parsePattern(d.Pattern, r.Reserved); err != nil {
		return Policy{}, fault.In("pattern", err)
	}
	if p.Actions, err = parseActions(d.Actions); err != nil {
		return Policy{}, fault.In("actions", err)
	}
	if !d.ExpiresAt.IsZero() && !d.ExpiresAt.After(now) {
		return Policy{}, fault.In("expiresAt", fault.New(fault.Invalid, "expiresAt must be in the future"))
	}
	if p.Method.ByDomain() {
		err = p.setDomain(d)
	} else {
		err = p.setIdentity(d, r)
	}
	if err != nil {
		return Policy{}, err
	}
	return p, nil
}

func parsePattern(s string, reserved []registry.Pattern) (registry.Pattern, error) {
	if s == "" {
		return registry.Pattern{}, fault.New(fault.Invalid, "pattern is missing")
	}
	pattern, err := registry.ParsePattern(s)
	if err != nil {
		f, _ := fault.As(err)
		return registry.Pattern{}, fault.New(fault.Invalid, "pattern: "+f.Message)
	}
	for _, r := range reserved {
		if r.Overlaps(pattern) {
			return registry.Pattern{}, fault.Newf(fault.Invalid,
				"pattern %s covers the reserved namespace %s, in which nobody may publish", s, r)
		}
	}
	return pattern, nil
}

func parseActions(names []string) ([]Action, error) {
	if len(names) == 0 {
		return []Action{Publish}, nil
	}
	var list []Action
	for _, name := range names {
		a, err := ParseAction(name)
		if err != nil {
			f, _ := fault.As(err)
			return nil, fault.New(fault.Invalid, "actions: "+f.Message)
		}
		if slices.Contains(list, a) {
			return nil, fault.Newf(fault.Invalid, "actions has %s twice", name)
		}
		list = append(list, a)
	}
	slices.Sort(list)
	return list, nil
}

// setDomain sets the fields of a policy by domain.
func (p *Policy) setDomain(d Draft) (err error) {
	switch {
	case d.Issuer != "":
		return foreignField("issuer", p.Method)
	case d.Subject != "":
		return foreignField("subject", p.Method)
	case len(d.Claims) > 0:
		return foreignField("claims", p.Method)
	}
	if p.Domain, err = ParseDomain(d.Domain); err != nil {
		return fault.In("domain", err)
	}
	if p.Fingerprint, err = ParseFingerprint(d.KeyFingerprint); err != nil {
		return fault.In("keyFingerprint", err)
	}
	proven := p.Domain.Patterns(p.Method)
	if len(proven) == 0 {
		return fault.In("domain", fault.Newf(fault.Invalid,
			"domain must be shorter: a server name has at most %d characters", registry.MaxName))
	}
	if !slices.ContainsFunc(proven, func(q registry.Pattern) bool { return q.Covers(p.Pattern) }) {
		return fault.In("pattern", fault.Newf(fault.Invalid, "pattern %s is not within what a proof of %s by %s proves: %s",
			p.Pattern, p.Domain, p.Method, joinPatterns(proven)))
	}
	return nil
}

func joinPatterns(list []registry.Pattern) string {
	return strings.Join(each.Texts(list), " and ")
}

// setIdentity sets the fields of a policy by ID token.
func (p *Policy) setIdentity(d Draft, r Rules) (err error) {
	switch {
	case d.Domain != "":
		return foreignField("domain", p.Method)
	case d.KeyFingerprint != "":
		return foreignField("keyFingerprint", p.Method)
	}
	if p.Issuer, err = r.issuer(p.Method, d.Issuer); err != nil {
		return fault.In("issuer", err)
	}
	if p.Subject, err = ParseSubjectPattern(d.Subject); err != nil {
		return fault.In("subject", err)
	}
	if err := checkClaims(d.Claims); err != nil {
		return fault.In("claims", err)
	}
	p.Claims = maps.Clone(d.Claims)
	if d.Subject == "" && len(d.Claims) == 0 {
		return fault.In("subject", fault.New(fault.Invalid,
			"subject and claims are both missing: every identity of the issuer would be admitted"))
	}
	if p.Method == GitHubOIDC && p.selects() == anything {
		return fault.In("claims", fault.New(fault.Invalid,
			"claims must have repository, repository_id, repository_owner or repository_owner_id, or subject must name an owner: "+
				"otherwise every repository of GitHub would be admitted"))
	}
	return nil
}

// Identity returns what an ID token must be like, as a policy without anything else. It returns
// fault.Invalid, with the name of the field, for an issuer that is not configured and what a policy
// may not have.
func (r Rules) Identity(issuer, subject string, claims map[string]string) (Policy, error) {
	p := Policy{Method: OIDC}
	if issuer != "" && issuer == r.GitHubIssuer {
		p.Method = GitHubOIDC
	}
	return p, p.setIdentity(Draft{Issuer: issuer, Subject: subject, Claims: claims}, r)
}

// issuer returns the issuer of a policy, which must be configured. It may be left out for
// github-oidc.
func (r Rules) issuer(m Method, given string) (string, error) {
	allowed := r.Issuers
	if m == GitHubOIDC {
		allowed = []string{r.GitHubIssuer}
		given = cmp.Or(given, r.GitHubIssuer)
	}
	switch {
	case given == "":
		return "", fault.New(fault.Invalid, "issuer is missing")
	case !slices.Contains(allowed, given):
		return "", fault.Newf(fault.Invalid, "issuer %s is not configured for %s on this service", quote(given), m)
	}
	return given, nil
}

func checkClaims(claims map[string]string) error {
	if len(claims) > maxClaims {
		return fault.Newf(fault.Invalid, "claims must have at most %d members, and has %d", maxClaims, len(claims))
	}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		switch value := claims[name]; {
		case name == "" || len(name) > maxClaimName || isUnprintable(name):
			return fault.Newf(fault.Invalid,
				"claims: a name must have 1 to %d characters, in UTF-8 without control characters", maxClaimName)
		case value == "" || len(value) > maxClaimValue || isUnprintable(value):
			return fault.Newf(fault.Invalid,
				"claims.%s must have 1 to %d characters, in UTF-8 without control characters", name, maxClaimValue)
		case strings.Contains(value, "*"):
			return fault.Newf(fault.Invalid,
				"claims.%s has a \"*\", but claims are compared exactly; use subject for a pattern", name)
		}
	}
	return nil
}

func foreignField(field string, m Method) error {
	return fault.In(field, fault.Newf(fault.Invalid, "%s has no meaning for method %s", field, m))
}
