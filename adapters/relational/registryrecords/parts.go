package registryrecords

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// part is what an index finds servers by: three characters of their words, the beginning of some,
// or a facet.
type part struct {
	text   string
	begins bool // parts that begin with the text are as good
}

// partLength is the number of characters of the parts of words. A shorter text is the beginning of
// parts.
const partLength = 3

// ofTitle is in front of the parts of titles.
const ofTitle = "t:"

// partsOf returns the parts that the servers of a search have; with titles, those whose titles have
// all words.
func partsOf(q registrystore.Search, titles bool) (all []part) {
	for _, f := range q.Facets {
		all = append(all, part{text: strings.TrimSpace(facetText([]registry.Facet{f}))})
	}
	for _, w := range q.Words {
		before := ""
		if titles {
			before = ofTitle
		}
		all = append(all, partsOfWord(before, w, partLength)...)
	}
	return all
}

// partsOfWord returns parts of a word, with a text in front of each: one at every step characters,
// and the last one. partLength is the greatest step with which they have all characters.
func partsOfWord(before, word string, step int) []part {
	chars := []rune(word)
	if len(chars) < partLength {
		return []part{{before + word, true}}
	}
	all := make([]part, 0, len(chars))
	last := len(chars) - partLength
	for i := 0; i < last; i += step {
		all = append(all, part{text: before + string(chars[i:i+partLength])})
	}
	return append(all, part{text: before + string(chars[last:])})
}

// withHexParts is syntax.withParts with an index of FTS5, whose words are parts in hexadecimal
// digits.
func withHexParts(all []part) condition {
	words := each.Map(all, func(p part) string { return hex.EncodeToString([]byte(p.text)) })
	return condition{
		"catalogue_parts JOIN catalogue AS c ON c.id = catalogue_parts.rowid WHERE catalogue_parts MATCH ?",
		[]any{strings.Join(words, " ")},
	}
}

// indexHexParts is syntax.indexParts for that index.
func indexHexParts(ctx context.Context, db *database.DB, tx bun.IDB, servers []catalogueRow) error {
	for _, r := range servers {
		var words []string
		for _, f := range r.Facets {
			words = append(words, hex.EncodeToString([]byte(strings.TrimSpace(facetText([]registry.Facet{f})))))
		}
		words = append(hexParts(words, "", r.words), hexParts(nil, ofTitle, r.title)...)
		slices.Sort(words)
		_, err := db.ExecStatement(ctx, tx,
			"INSERT OR REPLACE INTO catalogue_parts (rowid, parts) SELECT id, ? FROM catalogue WHERE name = ?",
			strings.Join(slices.Compact(words), " "), r.Name.String())
		if err != nil {
			return err
		}
	}
	return nil
}

// hexParts adds the parts of a text, of one to three characters, to words.
func hexParts(words []string, before, text string) []string {
	chars := []rune(text)
	for i := range chars {
		for n := 1; n <= partLength && i+n <= len(chars); n++ {
			words = append(words, hex.EncodeToString([]byte(before+string(chars[i:i+n]))))
		}
	}
	return words
}
