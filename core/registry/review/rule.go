package review

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// RuleID identifies a rule; it is a UUID in lower case.
type RuleID string

// When says which documents a rule approves.
type When string

// The conditions.
const (
	Any         When = "any"
	SameOrigins When = "same-origins" // Origins.Within one approved version of the server
)

// ParseWhen returns the condition with the given name. It returns fault.Invalid for any other text.
func ParseWhen(s string) (When, error) {
	switch w := When(s); w {
	case Any, SameOrigins:
		return w, nil
	}
	return "", fault.Newf(fault.Invalid, "when must be any or same-origins, not %q", s)
}

// Rule approves documents without a person.
type Rule struct {
	ID      RuleID
	Pattern registry.Pattern
	// Publisher restricts the rule to documents that the person with this user id submits, or a
	// publisher by the policy with this ID; empty for all.
	Publisher string
	When      When
	CreatedAt time.Time
}

// Covers reports whether the rule is for a server and its submitter. Its condition is not checked.
func (r *Rule) Covers(name registry.Name, by Submitter) bool {
	return r.Pattern.Matches(name) && (r.Publisher == "" || r.Publisher == by.Key || by.Policy != "" && r.Publisher == string(by.Policy))
}

// Origins are the places that a document takes code from or sends data to.
type Origins struct {
	packages   map[packageOrigin]bool
	remotes    map[string]bool // scheme, "://" and host
	repository repository
	open       bool // a remote may have any host
}

type packageOrigin struct{ registryType, baseURL, identifier string }

type repository struct{ url, id string }

// object is a JSON object. Its properties are read by their exact names, as the clients read them.
type object map[string]any

func (o object) text(name string) string {
	s, _ := o[name].(string)
	return s
}

func (o object) objects(name string) []object {
	items, _ := o[name].([]any)
	var all []object
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// ReadOrigins returns the origins of a server document. It returns fault.Invalid if the document is
// not a JSON object. Values of a wrong type, which documents from other registries may have, count
// as missing.
func ReadOrigins(doc []byte) (Origins, error) {
	var root object
	if err := json.Unmarshal(doc, &root); err != nil {
		return Origins{}, fault.Wrap(fault.Invalid, "the document is not a JSON object", err)
	}
	o := Origins{packages: map[packageOrigin]bool{}, remotes: map[string]bool{}}
	if r, ok := root["repository"].(map[string]any); ok {
		o.repository = repository{object(r).text("url"), object(r).text("id")}
	}
	for _, p := range root.objects("packages") {
		o.packages[packageOrigin{p.text("registryType"), p.text("registryBaseUrl"), p.text("identifier")}] = true
	}
	for _, r := range root.objects("remotes") {
		host, fixed := hostOf(r.text("url"))
		o.remotes[host] = true
		o.open = o.open || !fixed
	}
	return o, nil
}

// hostOf returns the scheme and the host, with its port, of a URL that may have variables. It
// reports false if the scheme or the host is a variable.
func hostOf(url string) (string, bool) {
	scheme, rest, found := strings.Cut(url, "://")
	if !found {
		return url, false
	}
	host := rest
	if end := strings.IndexAny(rest, "/?#\\"); end >= 0 {
		host = rest[:end]
	}
	origin := strings.ToLower(scheme + "://" + host)
	return origin, host != "" && !strings.ContainsAny(origin, "{}@")
}

// Within reports whether each package, the host of each remote and the repository of o are among
// those of an approved document. A remote whose host is a variable is not: its values may be any.
func (o Origins) Within(approved Origins) bool {
	for p := range o.packages {
		if !approved.packages[p] {
			return false
		}
	}
	for host := range o.remotes {
		if !approved.remotes[host] {
			return false
		}
	}
	return !o.open && (o.repository == repository{} || o.repository == approved.repository)
}

// FirstRule returns the first of the rules that approves a document. within reports whether its
// origins are within those of one approved version; it is called at most once.
func FirstRule(rules []Rule, name registry.Name, by Submitter, within func() (bool, error)) (RuleID, error) {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return !r.Covers(name, by) })
	if i := slices.IndexFunc(rules, func(r Rule) bool { return r.When == Any }); i >= 0 {
		return rules[i].ID, nil
	}
	if len(rules) == 0 {
		return "", nil
	}
	if same, err := within(); err != nil || !same {
		return "", err
	}
	return rules[0].ID, nil
}
