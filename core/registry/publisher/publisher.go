// Package publisher is the model of publishing without a person: proofs of a domain or of the
// identity of a CI job, and policies that say which proof may publish which servers (contract P-1
// to P-22). Everything in it is pure. Package delegating checks proofs, package delegating manages
// policies.
package publisher

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Method is the way in which a publisher proves who it is.
type Method string

// The methods.
const (
	DNS        Method = "dns"         // a key in the TXT records of a domain
	HTTP       Method = "http"        // a key on a page of a domain
	OIDC       Method = "oidc"        // an ID token of a configured issuer
	GitHubOIDC Method = "github-oidc" // an ID token of GitHub Actions
)

// ParseMethod returns the method with the given name. It returns fault.Invalid for any other text.
func ParseMethod(s string) (Method, error) {
	return fault.OneOf("method", s, DNS, HTTP, OIDC, GitHubOIDC)
}

// ByDomain reports whether the method proves a domain.
func (m Method) ByDomain() bool { return m == DNS || m == HTTP }

// Action is what a policy allows.
type Action string

// The actions of policies.
const (
	Publish Action = "publish" // publish versions
	Status  Action = "status"  // change the status of versions
)

// ParseAction returns the action with the given name. It returns fault.Invalid for any other text.
func ParseAction(s string) (Action, error) {
	return fault.OneOf("action", s, Publish, Status)
}

// Mode says what a proof permits.
type Mode string

// The modes.
const (
	Off        Mode = "off"      // no proof is accepted
	ByPolicies Mode = "policies" // a proof may do what policies allow
	Open       Mode = "open"     // a proof of a domain or of a GitHub repository may also publish what it proves
)

// ParseMode returns the mode with the given name. It returns fault.Invalid for any other text.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Off, ByPolicies, Open:
		return m, nil
	}
	return "", fault.Newf(fault.Invalid, "must be off, policies or open, not %s", quote(s))
}

// TokenTTL is the lifetime of a publisher's token.
const TokenTTL = 5 * time.Minute

// Permission allows actions on the servers that a pattern selects, as long as its policy lives.
type Permission struct {
	Actions []Action
	Pattern registry.Pattern
	Policy  registry.PolicyID // empty for a permission that does not depend on a policy (Open)
}

// Allows reports whether the permission covers an action on a server.
func (p Permission) Allows(a Action, name registry.Name) bool {
	return slices.Contains(p.Actions, a) && p.Pattern.Matches(name)
}

// Identity is the content of an ID token.
type Identity struct {
	Issuer  string
	Subject string
	Claims  map[string]string // claims that are strings, numbers or booleans
}

// Proof is a proof that was checked.
type Proof struct {
	Method   Method
	Domain   Domain   // dns, http
	Key      Key      // dns, http: the key that signed
	Identity Identity // oidc, github-oidc
}

// Subject returns what was proved, as it appears in tokens and in the audit log: the domain, or the
// issuer and the subject.
func (p *Proof) Subject() string {
	if p.Method.ByDomain() {
		return p.Domain.String()
	}
	return p.Identity.Issuer + " " + p.Identity.Subject
}

// OpenPermissions returns what the proof may do in a registry that is open to everybody: publish
// and change the status of the names that belong to what it proves. An ID token proves names for
// GitHub only, those of the owner of the repository.
func (p *Proof) OpenPermissions() []Permission {
	return each.Map(p.provenPatterns(), func(pattern registry.Pattern) Permission {
		return Permission{Actions: []Action{Publish, Status}, Pattern: pattern}
	})
}

func (p *Proof) provenPatterns() []registry.Pattern {
	switch owner := p.Identity.Claims["repository_owner"]; {
	case p.Method.ByDomain():
		return p.Domain.Patterns(p.Method)
	case p.Method == GitHubOIDC && owner != "" && !strings.ContainsFunc(owner, notInGitHubOwner):
		pattern, err := registry.ParsePattern("io.github." + owner + "/*")
		if err == nil {
			return []registry.Pattern{pattern}
		}
	}
	return nil
}

// notInGitHubOwner reports whether the name of a GitHub account cannot contain r.
func notInGitHubOwner(r rune) bool {
	return !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z') && !('0' <= r && r <= '9') && r != '-'
}

// quote returns s in double quotes, shortened for messages.
func quote(s string) string { return strconv.Quote(registry.Clip(s)) }
