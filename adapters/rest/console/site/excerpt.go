package site

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Excerpt is a text of a document, or its beginning if it is long: documents have up to 1 MiB, and
// a page has 100 KB at most. A page with an excerpt that is cut says where the whole text is.
type Excerpt struct {
	Text string
	Cut  bool
}

// NewExcerpt returns a text of at most max bytes. It is cut between characters.
func NewExcerpt(text string, max int) Excerpt {
	if len(text) <= max {
		return Excerpt{text, false}
	}
	for max > 0 && !utf8.RuneStart(text[max]) {
		max--
	}
	return Excerpt{text[:max], true}
}

// MaxJSON is the greatest size of the JSON on a page, in bytes.
const MaxJSON = 20 << 10

// IndentJSON returns a JSON text as people read it, at most MaxJSON bytes of it.
func IndentJSON(text []byte) Excerpt { return IndentLongJSON(text, MaxJSON) }

// IndentLongJSON returns a JSON text as people read it, at most max bytes of it.
func IndentLongJSON(text []byte, max int) Excerpt {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		b.Reset()
		b.Write(text)
	}
	e := NewExcerpt(b.String(), max)
	e.Text = EscapeDirections(e.Text)
	return e
}

// EscapeDirections returns a text in which the characters that change the direction of text, and
// those that are not seen, are written as in JSON: with them, a text could look like another one to
// a reviewer. Those that join letters stay, because some languages need them.
func EscapeDirections(text string) string { return directions.Replace(text) }

var directions = strings.NewReplacer(
	"\u200e", `\u200e`, "\u200f", `\u200f`, "\u061c", `\u061c`, "\u202a", `\u202a`, "\u202b", `\u202b`, "\u202c",
	`\u202c`, "\u202d", `\u202d`,
	"\u200b", `\u200b`, "\u2060", `\u2060`, "\u00ad", `\u00ad`, "\u180e", `\u180e`, "\ufeff", `\ufeff`,
	"\u202e", `\u202e`, "\u2066", `\u2066`, "\u2067", `\u2067`, "\u2068", `\u2068`, "\u2069", `\u2069`,
)
