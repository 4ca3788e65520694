// Package accessjson has the JSON form of why a call is allowed or denied, for the administration API
// and for commands.
package accessjson

import (
	"strings"

	"github.com/tollgate-dev/tollgate/core/access"
)

// Explanation says why a call is allowed, denied or challenged.
type Explanation struct {
	Effect        string    `json:"effect"           column:"EFFECT"`
	Reason        string    `json:"reason"           column:"REASON"`
	Server        string    `json:"server"           column:"SERVER"`
	Listing       string    `json:"listing"          column:"LISTING"`
	Rule          string    `json:"rule"             column:"RULE"`
	Subject       string    `json:"subject"          column:"SUBJECT"`
	Trust         string    `json:"trust"            column:"TRUST"`
	TrustReasons  Sentences `json:"trustReasons"     column:"TRUST REASONS"`
	RequiredTrust string    `json:"requiredTrust"    column:"REQUIRED TRUST"`
	Selector      string    `json:"selector"         column:"SELECTED BY"`
	Grant         string    `json:"grant"            column:"GRANT"`
	Observed      *Observed `json:"observed"`
	Steps         Steps     `json:"steps"            column:"PASSED OVER"`
	StepsTotal    int       `json:"stepsTotal"       column:"RULES PASSED OVER"`
}

// Sentences are several sentences.
type Sentences []string

// String returns the sentences as a table shows them.
func (s Sentences) String() string { return strings.Join(s, " ") }

// Observed is what a rule that only observes would have done.
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
	words := make([]string, len(s))
	for i, one := range s {
		words[i] = one.Rule + " (" + one.Failed + ")"
	}
	return strings.Join(words, ", ")
}

// New returns the JSON form of an explanation with at most limit of its steps, from an offset on.
func New(e *access.Explanation, offset, limit int) Explanation {
	steps := e.Page(offset, limit)
	x := Explanation{
		Effect: string(e.Effect), Reason: string(e.Reason), Server: e.Server, Listing: string(e.Listing), Rule: string(e.Rule),
		Subject: e.Subject, Trust: e.Trust.String(), RequiredTrust: e.Required.String(), Selector: e.Selector.String(),
		Steps: make(Steps, len(steps)), StepsTotal: len(e.Steps), TrustReasons: append(Sentences{}, e.Reasons...),
	}
	if e.Grant != (access.Grant{}) {
		x.Grant = string(e.Grant.Action) + " " + e.Grant.Pattern.String()
	}
	if o := e.Observed; o.Rule != "" {
		x.Observed = &Observed{string(o.Rule), string(o.Effect), string(o.Reason)}
	}
	for i, step := range steps {
		x.Steps[i] = Step{string(step.Rule), string(step.Failed)}
	}
	return x
}
