package review

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// Sign is one thing that a review changes, in words.
type Sign struct {
	Words  string
	Name   string // of what it is about; may be empty
	Danger bool   // a reviewer sees it in red
	Alone  bool   // it is not approved together with others
}

// signsOf returns the signs of what a document changes.
func signsOf(points []Point) []Sign {
	signs := make([]Sign, len(points))
	for i, p := range points {
		signs[i] = Sign{p.Words(), cutName(cmp.Or(p.Name, p.After, p.Before)), p.IsDangerous(), !p.IsHarmless()}
	}
	return signs
}

// Add adds a tool list about which the review decides, with its signs.
func (s *Shown) Add(p tools.Proposal) {
	s.Lists = append(s.Lists, p)
	var signs []Sign
	for _, d := range p.Differences {
		signs = append(signs, Sign{Words: capitalize(d.Sentence), Danger: d.IsDangerous(), Alone: true})
	}
	for _, f := range p.Findings {
		signs = append(signs, Sign{capitalize(f.Reason), cutName(f.Found), true, true})
	}
	s.Signs = append(signs, s.Signs...)
	slices.SortStableFunc(s.Signs, func(a, b Sign) int { return CompareDanger(a.Danger, b.Danger) })
}

// maxName is how many bytes of a name a sign has: the page of a review has more.
const maxName = 200

func cutName(name string) string {
	if len(name) > maxName {
		return strings.ToValidUTF8(name[:maxName], "") + "…"
	}
	return name
}

func capitalize(s string) string { return strings.ToUpper(s[:min(len(s), 1)]) + s[min(len(s), 1):] }

// leadingSigns is how many signs of a review a list has.
const leadingSigns = 2

// Leading returns the first signs, for a list, and how many are left out.
func (s *Shown) Leading() (signs []Sign, more int) {
	n := min(len(s.Signs), leadingSigns)
	return s.Signs[:n], len(s.Signs) - n
}

// IsDangerous reports whether a reviewer sees something of the review in red.
func (s *Shown) IsDangerous() bool {
	return slices.ContainsFunc(s.Signs, func(one Sign) bool { return one.Danger })
}

// Alone returns in words for what the review is not approved together with others; empty if all of it is harmless.
func (s *Shown) Alone() string {
	switch {
	case s.Kind == Tools || len(s.Lists) > 0:
		return "what has tools"
	case slices.ContainsFunc(s.Checks, func(c Check) bool { return c.State == CheckFailed }):
		return "a package whose check failed"
	}
	i := slices.IndexFunc(s.Signs, func(one Sign) bool { return one.Alone })
	if i < 0 {
		return ""
	}
	return strings.ToLower(s.Signs[i].Words)
}

// Objection returns a comment for a refusal that names what is dangerous; empty if nothing is.
func (s *Shown) Objection() string {
	const most, longest = 3, 100
	var all []string
	for _, one := range s.Signs {
		if one.Danger && len(all) < most {
			all = append(all, strings.TrimSpace(one.Words+" "+one.Name[:min(len(one.Name), longest)]))
		}
	}
	if all == nil {
		return ""
	}
	return "This is dangerous: " + strings.ToValidUTF8(strings.Join(all, "; "), "") + "."
}

// CompareWaiting orders what waits: what is dangerous first, and then by the time of submission.
func CompareWaiting(a, b Shown) int {
	return cmp.Or(CompareDanger(a.IsDangerous(), b.IsDangerous()), a.SubmittedAt.Compare(b.SubmittedAt), cmp.Compare(a.ID, b.ID))
}

// Text is a hash of all that a review would list.
type Text string

// Text returns the hash of the document with the tool lists that wait with it.
func (s *Shown) Text() Text {
	lists := make([]string, len(s.Lists))
	for i, l := range s.Lists {
		sum := sha256.Sum256(l.List.Canonical())
		lists[i] = string(l.Part) + " " + string(l.Source) + " " + hex.EncodeToString(sum[:])
	}
	slices.Sort(lists)
	document := sha256.Sum256(s.Document)
	sum := sha256.Sum256([]byte(hex.EncodeToString(document[:]) + "\n" + strings.Join(lists, "\n")))
	return Text(hex.EncodeToString(sum[:]))
}

// Approval is the first of the two approvals that a dangerous review may need.
type Approval struct {
	By   string // user id or Operator
	At   time.Time
	Text Text // what exactly was approved
}

// CompareDanger orders what is dangerous before the rest.
func CompareDanger(a, b bool) int { return compareFlags(!a, !b) }
