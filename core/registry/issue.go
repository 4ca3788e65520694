package registry

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// CodeRules marks the failure of a document that breaks rules, which is 422. Other faults of kind
// Invalid are malformed requests, which are 400 (contract R-5).
const CodeRules fault.Code = "document_rules"

// Bounds of what is told of a document with very many faults.
const (
	maxIssues = 1000 // kept, the rest counted
	maxNamed  = 50   // named in one sentence
	maxQuoted = 64   // characters quoted from a document
)

// IssueType is the class of an issue (contract R-55).
type IssueType string

// The types of issues.
const (
	IssueJSON     IssueType = "json"     // JSON that does not mean one thing
	IssueSchema   IssueType = "schema"   // one value breaks its row of the tables
	IssueSemantic IssueType = "semantic" // values do not fit each other or their meaning
	IssueLinter   IssueType = "linter"   // allowed, but hardly meant
)

// Severity tells whether an issue keeps a document from being published.
type Severity string

// The severities of issues.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Issue is one thing that is wrong, or looks wrong, in a document.
type Issue struct {
	Type      IssueType
	Path      string // JSON path, such as packages[0].transport.url; empty for the whole document
	Message   string // what to change; it does not repeat the path
	Severity  Severity
	Reference string // the rule, as table/property/rule, such as ServerDetail/name/pattern
}

// problem is an issue that does not know yet where it stands.
type problem struct {
	kind     IssueType
	rule     string
	sentence string
}

func schemaProblem(rule, format string, args ...any) *problem {
	return &problem{IssueSchema, rule, fmt.Sprintf(format, args...)}
}

func semanticProblem(rule, format string, args ...any) *problem {
	return &problem{IssueSemantic, rule, fmt.Sprintf(format, args...)}
}

func warning(rule, format string, args ...any) *problem {
	return &problem{IssueLinter, rule, fmt.Sprintf(format, args...)}
}

// report gathers issues and where in the document they stand.
type report struct {
	found []located
	more  int // errors beyond maxIssues
}

type located struct {
	Issue
	offset int
}

// add notes a problem with v; none is no issue. Warnings come after all errors,
// so that they take no room from them, and are dropped where there is none.
func (r *report) add(v *node, at place, p *problem) {
	if p == nil {
		return
	}
	severity := SeverityError
	if p.kind == IssueLinter {
		severity = SeverityWarning
	}
	if r.full() {
		if severity == SeverityError {
			r.more++
		}
		return
	}
	r.found = append(r.found, located{Issue{p.kind, at.path, p.sentence, severity, at.rule + "/" + p.rule}, v.offset})
}

func (r *report) full() bool { return len(r.found) >= maxIssues }

// issues returns what was found in the order of the document.
func (r *report) issues() []Issue {
	slices.SortStableFunc(r.found, func(a, b located) int { return a.offset - b.offset })
	all := make([]Issue, 0, len(r.found)+1)
	for _, l := range r.found {
		all = append(all, l.Issue)
	}
	if r.more > 0 {
		all = append(all, Issue{IssueSchema, "", unlisted(r.more), SeverityError, "ServerDetail/issues"})
	}
	return all
}

func unlisted(n int) string {
	if n == 1 {
		return "1 more issue is not listed"
	}
	return fmt.Sprintf("%d more issues are not listed", n)
}

// errors returns the issues that are no warnings.
func (r *report) errors() []Issue {
	return slices.DeleteFunc(r.issues(), func(i Issue) bool { return i.Severity == SeverityWarning })
}

// refusal names each broken rule by path and rule, the first maxNamed of them;
// empty when none is broken.
func (r *report) refusal(subject string) string {
	broken := r.errors()
	if len(broken) == 0 {
		return ""
	}
	total := len(broken)
	if r.more > 0 {
		total += r.more - 1 // the last one stands for them
	}
	var b strings.Builder
	if total == 1 {
		fmt.Fprintf(&b, "%s breaks a rule: ", subject)
	} else {
		fmt.Fprintf(&b, "%s breaks %d rules: ", subject, total)
	}
	for i, issue := range broken[:min(len(broken), maxNamed)] {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(issue.Path + " " + issue.Message)
	}
	if total > maxNamed {
		fmt.Fprintf(&b, "; and %d more", total-maxNamed)
	}
	return b.String()
}

// quote shows a value of the document, shortened, on one line.
func quote(s string) string { return fmt.Sprintf("%q", shorten(s)) }

func shorten(s string) string {
	if utf8.RuneCountInString(s) <= maxQuoted {
		return s
	}
	return string([]rune(s)[:maxQuoted]) + "…"
}
