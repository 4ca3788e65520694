package tools

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// Proposal is a list about which a reviewer decides (contract W-4).
type Proposal struct {
	Shown

	Before                  *List // what it is compared with; nil if there is nothing
	Added, Changed, Removed []string
	Differences             []Difference // the most dangerous first; without Before, what it brings
	Findings                []Finding    // of the whole list
}

// Propose returns a list with what a reviewer should know about it. before is the approved list with which
// it is compared, or nil, and other what other servers show (Candidates).
func Propose(s Shown, before *List, other Listed) Proposal {
	p := Proposal{Shown: s, Before: before, Findings: Inspect(s.List, other)}
	var old List
	if before != nil {
		old = *before
	}
	p.Added, p.Changed, p.Removed = Names(old, s.List)
	p.Differences = Compare(old, s.List)
	return p
}

// The most candidates of a list, and the characters of one.
const (
	maxCandidates = 2000
	maxCandidate  = 200
)

// Candidates returns the words of a list that may be names of other servers or of their tools, each once
// and in order: the names of its tools, and what is more than a plain word. At most 2,000, those of its
// tools first.
func (l List) Candidates() []string {
	seen := map[string]bool{}
	for _, t := range l.Tools {
		seen[t.Name] = true
	}
	for _, word := range strings.FieldsFunc(string(l.canonical), func(r rune) bool { return !isNamePart(r) }) {
		word = strings.Trim(word, ".-/")
		if len(seen) >= maxCandidates {
			break
		}
		if utf8.RuneCountInString(word) <= maxCandidate && (isIdentifier(word) || strings.Contains(word, "/")) {
			seen[word] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// maxDigest is how much text of tools people find a server by, in bytes.
const maxDigest = 8 << 10

// Digest is what the lists of a server add to what people find it by (contract W-10). The zero value is that
// of a server without lists.
type Digest struct {
	Names    []string // of the tools that are approved
	Words    string   // names, titles and descriptions of these in lower case, a line each, as far as they fit
	Differs  bool     // a list waits for a decision
	approved bool
	writes   bool // a tool does not say that it only reads
	destroys bool
}

// Add adds a list. content is its canonical JSON, which is read of an approved list only. It returns
// fault.Invalid for what is no list.
func (d *Digest) Add(state State, content []byte) error {
	if state != Approved {
		d.Differs = d.Differs || state.waits()
		return nil
	}
	l, err := Parse(content)
	if err != nil {
		return err
	}
	d.approved = true
	for _, t := range l.Tools {
		if !slices.Contains(d.Names, t.Name) {
			d.Names = append(d.Names, t.Name)
		}
		readOnly, _ := t.Says(ReadOnly)
		d.writes, d.destroys = d.writes || !readOnly, d.destroys || t.IsDestructive()
		line := strings.ToLower(strings.Join(strings.FieldsFunc(t.Name+" "+t.Title()+" "+t.Description(), func(r rune) bool {
			return unicode.IsSpace(r) || unicode.IsControl(r)
		}), " "))
		if len(d.Words)+len(line) < maxDigest {
			d.Words += "\n" + line
		}
	}
	return nil
}

// Facets returns by what of its tools a server is selected.
func (d *Digest) Facets() (all []registry.Facet) {
	for _, f := range []struct {
		value string
		has   bool
	}{
		{"approved", d.approved}, {"changed", d.Differs}, {"destructive", d.destroys}, {"read-only", d.approved && !d.writes},
	} {
		if f.has {
			all = append(all, registry.NewFacet(registry.FacetTools, f.value))
		}
	}
	return all
}
