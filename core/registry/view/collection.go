package view

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// MaxCollected is the greatest number of servers of a collection; its title and sentence are bounded likewise.
const (
	MaxCollected          = 100
	maxTitle, maxSentence = 60, 200 // characters
)

// CollectionKind describes the collections, which ParseCollection reads.
var CollectionKind = kinds.Kind{
	Name: "collection", List: "collections", Category: audit.RegistryChange, Put: "collection_put", Remove: "collection_remove",
	About: "of servers, which the catalogue shows first", Most: 50,
	PutDoc: "A server that is not listed, or that a view does not have, is left out where the collection is shown.",
	Fields: []kinds.Field{
		{Name: "name", Required: true, Check: fields.CheckName, Example: "start", Column: "NAME"},
		{Name: "title", Label: "Title", Hint: "Empty for the name.", Most: maxTitle, Doc: "What people read; empty for the name",
			Example: "Start here", Usage: "what people read (default the name)", Column: "TITLE"},
		{Name: "sentence", Required: true, Label: "Sentence", Most: maxSentence, Doc: "Whom it is for, in a sentence",
			Example: "What every team needs.", Usage: "whom it is for, in a sentence", Column: "SENTENCE"},
		{Name: "servers", Shape: kinds.Texts, Required: true, Check: kinds.Checked(registry.ParseName), Label: "Servers", Most: MaxCollected,
			Hint: "Their names, one in each line, in the order in which they are shown.", Doc: "Names of 1 to 100 servers, in their order",
			Example: "com.example/weather", Usage: "name of a server, in their order; may be repeated", Column: "SERVERS"},
	},
}

// CollectionName is the name of a collection: 1 to 40 lower-case letters, digits and hyphens.
type CollectionName string

// Collection is a list of servers that operators recommend.
type Collection struct {
	Name            CollectionName
	Title, Sentence string             // Title is optional
	Servers         []registry.Pattern // each of one name
	ManagedBy       string             // the owner of the file that manages it; empty without one
}

// ParseCollection returns the collection that fields describe. It returns fault.Invalid, with the name
// of the field, if one is wrong.
func ParseCollection(f audit.Details) (Collection, error) {
	r := fields.Reader{Values: f, Err: fields.CheckName(f.Text("name"))}
	c := Collection{Name: CollectionName(f.Text("name")), Sentence: r.Text("sentence", "", maxSentence)}
	if f.Text("title") != "" {
		c.Title = r.Text("title", "", maxTitle)
	}
	c.Servers = fields.Parsed(&r, "servers", true, MaxCollected, parseCollected)
	return c, r.Err
}

// parseCollected returns the pattern that selects only the server with a name.
func parseCollected(s string) (registry.Pattern, error) {
	if _, err := registry.ParseName(s); err != nil {
		return registry.Pattern{}, err
	}
	return registry.ParsePattern(s)
}

// Fields returns the collection as ParseCollection reads it.
func (c *Collection) Fields() audit.Details {
	return audit.Details{
		"name": audit.Text(c.Name), "title": audit.Text(c.Title), "sentence": audit.Text(c.Sentence),
		"servers": audit.Texts(each.Texts(c.Servers)),
	}
}

// Index returns the place of a server in the collection, or -1.
func (c *Collection) Index(name registry.Name) int {
	return slices.IndexFunc(c.Servers, func(p registry.Pattern) bool { return p.Matches(name) })
}

// Ranges returns the names of the first servers, ordered, as far as they are in other ranges; nil are all names.
func (c *Collection) Ranges(most int, within []registry.NameRange) []registry.NameRange {
	ranges := []registry.NameRange{}
	for _, p := range c.Servers[:min(most, len(c.Servers))] {
		one := p.Range()
		if within == nil || slices.ContainsFunc(within, func(r registry.NameRange) bool { return r.Contains(one.From) }) {
			ranges = append(ranges, one)
		}
	}
	slices.SortFunc(ranges, func(a, b registry.NameRange) int { return strings.Compare(a.From, b.From) })
	return ranges
}
