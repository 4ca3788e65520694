package catalogue

import (
	"html"
	"slices"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// The bounds of a comparison, in bytes. Anybody may ask for one.
const (
	maxCompared   = 256 << 10 // of a document
	maxDifference = 24 << 10  // of what the page has
)

// comparison is what differs between two versions of a server, as the page of a review has it.
type comparison struct {
	From, To string
	Points   []review.Point
	Tools    []tools.Difference // of lists that are approved of both
	Lines    []review.Line
	Cut      bool // something is left out
}

// addComparison adds what differs between the versions from and to, if they are in the address. It returns
// fault.NotFound for a version that the reader does not find.
func (p *Pages) addComparison(v *site.Visit, view *serverView) error {
	c := &comparison{From: v.Text("from"), To: v.Text("to")}
	if c.From == "" || c.To == "" {
		return nil
	}
	var records [2]registry.Record
	var lists [2][]tools.Shown
	for i, version := range []string{c.From, c.To} {
		var err error
		if records[i], err = p.ports.Servers.Version(v.UserContext(), view.Name, version, "true"); err != nil {
			return err
		}
		if lists[i], err = p.ports.Tools.Of(v.UserContext(), records[i]); err != nil {
			return err
		}
		c.Cut = c.Cut || len(records[i].Document) > maxCompared
	}
	if view.Comparison = c; c.Cut {
		return nil
	}
	return c.compare(records, lists)
}

func (c *comparison) compare(records [2]registry.Record, lists [2][]tools.Shown) (err error) {
	if c.Points, err = review.Summarize(records[0].Document, records[1].Document); err != nil {
		return err
	}
	if c.Lines, _, err = review.Unified(records[0].Document, records[1].Document); err != nil {
		return err
	}
	for _, after := range lists[1] {
		same := func(s tools.Shown) bool {
			return s.State == tools.Approved && s.Place == after.Place && s.Source == after.Source
		}
		if i := slices.IndexFunc(lists[0], same); i >= 0 && after.State == tools.Approved {
			c.Tools = append(c.Tools, tools.Compare(lists[0][i].List, after.List)...)
		}
	}
	left := maxDifference
	c.Points = fitting(c, c.Points, &left, func(p review.Point) int { return width(p.Name + p.Before + p.After + p.Note) })
	c.Tools = fitting(c, c.Tools, &left, func(d tools.Difference) int { return width(d.Sentence) })
	c.Lines = fitting(c, c.Lines, &left, func(l review.Line) int { return width(l.Text()) })
	return nil
}

// width returns how many bytes a text has on the page.
func width(text string) int { return len(html.EscapeString(text)) }

// fitting returns the first items for which there is space.
func fitting[T any](c *comparison, all []T, left *int, size func(T) int) []T {
	const markup = 30
	for i := range all {
		if *left -= size(all[i]) + markup; *left < 0 {
			c.Cut = true
			return all[:i]
		}
	}
	return all
}
