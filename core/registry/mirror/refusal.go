package mirror

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Rule is why a mirror refuses a version, or all versions of a server (contract C-65).
type Rule string

// The rules.
const (
	RuleRecord     Rule = "record"     // the record cannot be read, or what it says besides the document is wrong
	RuleDocument   Rule = "document"   // the document breaks a rule of documents
	RuleReserved   Rule = "reserved"   // no one may publish the name
	RuleGranted    Rule = "granted"    // people here may publish the name
	RuleQuarantine Rule = "quarantine" // it is in quarantine here
	RuleStore      Rule = "store"      // the registry cannot hold it: the server has too many versions
)

// RuleOf returns the rule by which an error refuses a version. The errors of names have their own
// rules (CheckName).
func RuleOf(err error) Rule {
	f, ok := fault.As(err)
	switch {
	case ok && f.Code == registry.CodeRules:
		return RuleDocument
	case fault.Is(err, fault.Forbidden):
		return RuleQuarantine
	case fault.Is(err, fault.Conflict):
		return RuleStore
	}
	return RuleRecord
}

// Refusals is how many versions were refused by each rule, or servers by the rules of names.
type Refusals map[Rule]int

// String returns the numbers as "rule number, rule number", ordered by rule; empty without any.
func (r Refusals) String() string {
	var words []string
	for rule, n := range r {
		if n > 0 {
			words = append(words, fmt.Sprintf("%s %d", rule, n))
		}
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// ParseRefusals returns the numbers in a text that String returned; nil without any. It returns
// fault.Invalid for another text.
func ParseRefusals(s string) (Refusals, error) {
	if s == "" {
		return nil, nil
	}
	r := Refusals{}
	for part := range strings.SplitSeq(s, ", ") {
		rule, number, _ := strings.Cut(part, " ")
		n, err := strconv.Atoi(number)
		if rule == "" || err != nil || n < 1 {
			return nil, fault.Newf(fault.Invalid, "%.60q is not a number of refusals", part)
		}
		r[Rule(rule)] = n
	}
	return r, nil
}
