package registry

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// CodeRules is the code of a fault for a document that breaks rules, which is status 422. Other
// faults of kind Invalid are malformed requests, which are status 400 (contract R-5).
const CodeRules fault.Code = "document_rules"

// Bounds of a report on a document with very many faults.
const (
	maxIssues = 1000 // issues in a report; more are only counted
	maxNamed  = 50   // issues in one message
	maxQuoted = 64   // characters quoted from a document
)

// IssueType is the class of an issue (contract R-55).
type IssueType string

// The types of issues.
const (
	IssueJSON     IssueType = "json"     // JSON with more than one meaning
	IssueSchema   IssueType = "schema"   // one value breaks a rule of its property
	IssueSemantic IssueType = "semantic" // values contradict each other or their meaning
	IssueLinter   IssueType = "linter"   // allowed, but probably a mistake
)

// Severity says whether an issue prevents the publication of a document.
type Severity string

// The severities of issues.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Issue is a mistake, or a probable mistake, in a document.
type Issue struct {
	Type      IssueType
	Path      string // JSON path, for example packages[0].transport.url; empty for the whole document
	Message   string // what to change; it does not repeat the path
	Severity  Severity
	Reference string // the rule, as table/property/rule, for example ServerDetail/name/pattern
}

// problem is an issue without its location.
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

func linterProblem(rule, format string, args ...any) *problem {
	return &problem{IssueLinter, rule, fmt.Sprintf(format, args...)}
}

// report collects issues and their locations in the document.
type report struct {
	found []locatedIssue
	more  int // errors beyond maxIssues
}

type locatedIssue struct {
	Issue
	offset int
}

// addProblem adds a problem of the value v; a nil problem is ignored. A full report counts further
// errors and drops further warnings. Warnings are added after all errors.
func (r *report) addProblem(v *node, at location, p *problem) {
	if p == nil {
		return
	}
	severity := SeverityError
	if p.kind == IssueLinter {
		severity = SeverityWarning
	}
	if r.isFull() {
		if severity == SeverityError {
			r.more++
		}
		return
	}
	r.found = append(r.found, locatedIssue{
		Issue{p.kind, at.path, p.sentence, severity, at.rule + "/" + p.rule}, v.offset,
	})
}

func (r *report) isFull() bool { return len(r.found) >= maxIssues }

// sortedIssues returns the issues in the order of the document.
func (r *report) sortedIssues() []Issue {
	slices.SortStableFunc(r.found, func(a, b locatedIssue) int { return a.offset - b.offset })
	all := make([]Issue, 0, len(r.found)+1)
	for _, l := range r.found {
		all = append(all, l.Issue)
	}
	if r.more > 0 {
		all = append(all, Issue{IssueSchema, "", unlistedMessage(r.more), SeverityError, "ServerDetail/issues"})
	}
	return all
}

// unlistedMessage returns the message about the issues beyond maxIssues.
func unlistedMessage(n int) string {
	if n == 1 {
		return "1 more issue is not listed"
	}
	return fmt.Sprintf("%d more issues are not listed", n)
}

// errorIssues returns the issues that are not warnings.
func (r *report) errorIssues() []Issue {
	return slices.DeleteFunc(r.sortedIssues(), func(i Issue) bool { return i.Severity == SeverityWarning })
}

// refusalText returns a message with the path and the rule of the first maxNamed errors, or ""
// without errors.
func (r *report) refusalText(subject string) string {
	broken := r.errorIssues()
	if len(broken) == 0 {
		return ""
	}
	total := len(broken)
	if r.more > 0 {
		total += r.more - 1 // the last issue represents them
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

// quote returns a value of the document, shortened, on one line and in quotes.
func quote(s string) string { return fmt.Sprintf("%q", shorten(s)) }

func shorten(s string) string {
	if utf8.RuneCountInString(s) <= maxQuoted {
		return s
	}
	return string([]rune(s)[:maxQuoted]) + "…"
}
