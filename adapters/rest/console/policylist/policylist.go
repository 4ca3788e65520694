// Package policylist has what the pages of publisher policies of people and of operators share.
package policylist

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// Fields of policies by every method.
var (
	Pattern = site.Input{
		Name: "pattern", Label: "Servers", Hint: "A name, a prefix such as com.example/*, or *.", Required: true,
	}
	Actions = site.Input{
		Name: "actions", Label: "May", Kind: "choices", Options: site.Options(publisher.Publish, publisher.Status),
	}
	Domain  = site.Input{Name: "domain", Label: "Domain", Hint: "For a domain, for example example.com."}
	Key     = site.Input{Name: "keyFingerprint", Label: "Key", Hint: "For a domain: the only key that is admitted. Empty for all."}
	Subject = site.Input{Name: "subject", Label: "Subject", Hint: "For a token: * stands for any characters except / and :."}
	Claims  = site.Input{
		Name: "claims", Label: "Claims", Kind: "area",
		Hint: "For a token: one on each line, such as repository=acme/tools.",
	}
	ExpiresAt = site.Input{
		Name: "expiresAt", Label: "End", Kind: "date", Hint: "It ends at the beginning of this day, UTC. Empty: never.",
	}
)

// ClaimPrefix is how the names of fields begin that have the value of one claim.
const ClaimPrefix = "claims."

// Row is a policy in words. The template "policies" shows rows.
type Row struct {
	delegating.Policy

	Who []string // lines that say whom it admits
}

// NewRows returns policies in words.
func NewRows(all []delegating.Policy) []Row {
	rows := make([]Row, len(all))
	for i, one := range all {
		rows[i] = Row{one, describePublisher(one.Policy)}
	}
	return rows
}

// ways are the methods in words.
var ways = map[publisher.Method]string{
	publisher.DNS: "DNS", publisher.HTTP: "site", publisher.GitHubOIDC: "GitHub Actions", publisher.OIDC: "token",
}

// Way returns a method in words.
func Way(m publisher.Method) string { return ways[m] }

// How returns the way in which the publisher proves who it is.
func (r Row) How() string { return Way(r.Method) }

// describePublisher returns whom a policy admits: a domain, or who has a token of an issuer.
func describePublisher(p publisher.Policy) (lines []string) {
	for _, text := range append(append([]string{p.Domain.String(), p.Subject.String()}, Lines(p.Claims)...), p.Issuer) {
		if text != "" {
			lines = append(lines, text)
		}
	}
	return lines
}

// Lines returns claims in words, ordered by name.
func Lines(claims map[string]string) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		lines = append(lines, name+": "+claims[name])
	}
	return lines
}

// keyLength is the length of the part of a key that a page shows.
const keyLength = 24

// Keys returns lines that say to which key, repository or owner the policy is bound, or which key was
// used last.
func (r Row) Keys() []string {
	switch used := r.UsedKey; {
	case r.Fingerprint.String() != "":
		return []string{"only " + r.Fingerprint.String()}
	case used != "":
		return []string{used[:min(keyLength, len(used))] + "…"}
	}
	return Lines(r.Bound)
}

// ReadDraft returns the policy that a form describes, without its owner.
func ReadDraft(v *site.Visit) (publisher.Draft, error) {
	d := publisher.Draft{
		Method: v.Form.Get("method"), Pattern: v.Trimmed("pattern"), Actions: v.Form["actions"],
		Domain: v.Trimmed("domain"), KeyFingerprint: v.Trimmed("keyFingerprint"), Issuer: v.Trimmed("issuer"),
		Subject: v.Trimmed("subject"),
	}
	var err error
	if d.Claims, err = ReadClaims(v); err != nil {
		return d, err
	}
	if text := v.Form.Get("expiresAt"); text != "" {
		if d.ExpiresAt, err = time.Parse(time.DateOnly, text); err != nil {
			err = fault.New(fault.Invalid, "expiresAt must be a day such as 2027-01-31")
		}
	}
	return d, err
}

// ReadClaims returns the claims in a form: one on each line, and those with a field of their own.
func ReadClaims(v *site.Visit) (map[string]string, error) {
	claims := map[string]string{}
	for line := range strings.Lines(v.Form.Get("claims")) {
		name, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if _, twice := claims[name]; twice || !found && name != "" {
			return nil, fault.New(fault.Invalid, "claims must be of the form name=value, each name once")
		}
		if found {
			claims[name] = value
		}
	}
	for field := range v.Form {
		if name, ok := strings.CutPrefix(field, ClaimPrefix); ok && v.Trimmed(field) != "" {
			claims[name] = v.Trimmed(field)
		}
	}
	return claims, nil
}
