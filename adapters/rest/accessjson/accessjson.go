// Package accessjson has the JSON form of why a call is allowed or denied, for the administration API
// and for commands.
package accessjson

import (
	"strings"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// Explanation says why a call is allowed, denied or challenged.
type Explanation struct {
	Effect        string    `json:"effect"           column:"EFFECT"`
	Reason        string    `json:"reason"           column:"REASON"`
	Server        string    `json:"server"           column:"SERVER"`
	Listing       string    `json:"listing"          column:"LISTING"`
	Rule          string    `json:"rule"             column:"RULE"`
	Subject       string    `json:"subject"          column:"SUBJECT"`
	Groups        Texts     `json:"groups"           column:"GROUPS"`
	Grants        Texts     `json:"grants"           column:"GRANTS"`
	Trust         string    `json:"trust"            column:"TRUST"`
	TrustReasons  Sentences `json:"trustReasons"     column:"TRUST REASONS"`
	RequiredTrust string    `json:"requiredTrust"    column:"REQUIRED TRUST"`
	Selector      string    `json:"selector"         column:"SELECTED BY"`
	Grant         string    `json:"grant"            column:"GRANT"`
	Tool          string    `json:"tool"             column:"TOOL"`
	Observed      *Observed `json:"observed"`
	Steps         Steps     `json:"steps"            column:"PASSED OVER"`
	StepsTotal    int       `json:"stepsTotal"       column:"RULES PASSED OVER"`
}

// Texts are several names.
type Texts []string

// String returns the names as a table shows them.
func (t Texts) String() string { return strings.Join(t, ", ") }

// Sentences are several sentences.
type Sentences []string

// String returns the sentences as a table shows them.
func (s Sentences) String() string { return strings.Join(s, " ") }

// Observed is what a rule that only observes, or the change of a tool, would have done.
type Observed struct {
	Rule   string `json:"rule"`
	Effect string `json:"effect"`
	Reason string `json:"reason"`
}

// Step is a rule that did not decide, with the first of its conditions that failed.
type Step struct {
	Rule   string `json:"rule"`
	Failed string `json:"failed"`
}

// Steps are the rules before the one that decided.
type Steps []Step

// String returns the steps as a table shows them.
func (s Steps) String() string {
	return strings.Join(each.Map(s, func(one Step) string { return one.Rule + " (" + one.Failed + ")" }), ", ")
}

func grantText(g access.Grant) string { return string(g.Action) + " " + g.Pattern.String() }

// Member returns the person or the service account that the explanation is about, at a trust level.
func (x *Explanation) Member(level trustlevel.Level) (access.Member, error) {
	kind, id, _ := strings.Cut(x.Subject, ":")
	m := access.Member{Kind: access.Person, ID: id, Trust: level, Whole: true}
	if kind == string(access.SelectService) {
		m.Kind = access.Service
	}
	for _, g := range x.Groups {
		provider, name, _ := strings.Cut(g, "/")
		m.Groups = append(m.Groups, access.Group{Provider: provider, Name: name})
	}
	for _, g := range x.Grants {
		action, pattern, _ := strings.Cut(g, " ")
		p, err := toolserver.ParsePattern(pattern)
		if err != nil {
			return m, err
		}
		m.Grants = append(m.Grants, access.Grant{Action: toolserver.Action(action), Pattern: p})
	}
	return m, nil
}

// New returns the JSON form of an explanation with at most limit of its steps, from an offset on.
func New(e *access.Explanation, offset, limit int) Explanation {
	steps := e.Page(offset, limit)
	x := Explanation{
		Effect: string(e.Effect), Reason: string(e.Reason), Server: e.Server, Listing: string(e.Listing), Rule: string(e.Rule),
		Subject: e.Subject, Trust: e.Trust.String(), RequiredTrust: e.Required.String(), Selector: e.Selector.String(),
		Groups: each.Map(e.Member.Groups, func(g access.Group) string { return g.Provider + "/" + g.Name }),
		Grants: each.Map(e.Member.Grants, grantText),
		Tool:   e.Tool.Sentence(), StepsTotal: len(e.Steps), TrustReasons: append(Sentences{}, e.Reasons...),
		Steps: each.Map(steps, func(s access.Step) Step { return Step{string(s.Rule), string(s.Failed)} }),
	}
	if e.Grant != (access.Grant{}) {
		x.Grant = grantText(e.Grant)
	}
	if o := e.Observed; o.Effect != "" {
		x.Observed = &Observed{string(o.Rule), string(o.Effect), string(o.Reason)}
	}
	return x
}
