package registry

import (
	"slices"
	"strings"
)

// Summary is what people see of a server in a list, and find it by.
type Summary struct {
	Title       string // empty if the document lacks it
	Description string
	Facets      []Facet // ordered, each once
}

// Facet is something by which servers are selected: a kind and a value, for example "package:npm".
type Facet string

// The kinds of facets.
const (
	FacetCalled    = "called"    // the part of the name after the slash
	FacetNamespace = "namespace" // the part of the name before the slash
	FacetOwner     = "owner"     // "none", or "known"
	FacetOrigin    = "origin"    // the mirror that brought it, or OwnOrigin
	FacetPackage   = "package"   // the type of a package
	FacetRemote    = "remote"    // "true" or "false": it has a remote or not
	FacetStatus    = "status"    // of its latest version
	FacetTools     = "tools"     // "approved", "changed" (a list waits), "read-only" (all of them), "destructive" (some)
	FacetTransport = "transport" // of a package or a remote, for example "stdio"
)

// OwnOrigin is the origin of a server that was published here.
const OwnOrigin = "here"

// Limits of a summary. The rest of a document is on its own page.
const (
	maxFacets      = 64
	maxTitle       = 200   // characters
	maxDescription = 1_000 // characters
)

// NewFacet returns a facet. The value is compared in lower case.
func NewFacet(kind, value string) Facet { return Facet(kind + ":" + strings.ToLower(value)) }

// Value returns the value of a facet of a kind; empty for a facet of another kind.
func (f Facet) Value(kind string) string {
	value, _ := strings.CutPrefix(string(f), kind+":")
	if len(value) == len(f) {
		return ""
	}
	return value
}

// SummaryOf returns the summary of a stored version. A document that is not an object has neither
// title nor description.
func SummaryOf(r Record) Summary {
	var s Summary
	_, root, _ := parseObject(r.Document) // the zero node has no properties
	title, _ := root.stringProperty("title")
	description, _ := root.stringProperty("description")
	s.Title = firstCharacters(strings.Join(strings.Fields(title), " "), maxTitle)
	s.Description = firstCharacters(description, maxDescription)
	remotes, packages := root.itemsOf("remotes"), root.itemsOf("packages")
	s.add(FacetRemote, boolWord(len(remotes) > 0))
	s.add(FacetNamespace, r.Name.Namespace())
	s.add(FacetStatus, string(r.Status))
	s.add(FacetCalled, lastPart(r.Name.String()))
	if s.add(FacetOrigin, r.Origin.Mirror); r.Origin.Mirror == "" {
		s.add(FacetOrigin, OwnOrigin)
	}
	for i := range packages {
		kind, _ := packages[i].stringProperty("registryType")
		s.add(FacetPackage, kind)
		kind, _ = packages[i].property("transport").stringProperty("type")
		s.add(FacetTransport, kind)
	}
	for i := range remotes {
		kind, _ := remotes[i].stringProperty("type")
		s.add(FacetTransport, kind)
	}
	slices.Sort(s.Facets)
	s.Facets = slices.Compact(s.Facets)
	return s
}

func (s *Summary) add(kind, value string) {
	if value != "" && len(s.Facets) < maxFacets {
		s.Facets = append(s.Facets, NewFacet(kind, value))
	}
}

func boolWord(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// Match says how well a server fits what somebody looks for; a smaller one is better.
type Match int

// The matches of a search, best first.
const (
	MatchesName  Match = iota // the name, or its part after the slash, is what was written
	MatchesTitle              // the title has all words
	MatchesStart              // the name begins with what was written
	MatchesText               // name, title and description together have all words
)

// MatchOf returns how a server that has all words fits them. The words and the title are in lower
// case.
func MatchOf(name, title string, words []string) Match {
	lower := strings.ToLower(name)
	if len(words) == 1 && (words[0] == lower || words[0] == lastPart(lower)) {
		return MatchesName
	}
	for _, w := range words {
		if strings.Contains(title, w) {
			continue
		}
		if len(words) == 1 && strings.HasPrefix(name, w) {
			return MatchesStart
		}
		return MatchesText
	}
	return MatchesTitle
}

// lastPart returns the part of a name after its slash.
func lastPart(name string) string {
	_, last, _ := strings.Cut(name, "/")
	return last
}

// firstCharacters returns a text without what comes after n characters.
func firstCharacters(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}
