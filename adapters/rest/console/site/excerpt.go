package site

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Excerpt is a text of a document, or its beginning if it is long: documents have up to 1 MiB, and a page
// has 100 KB at most. A page with an excerpt that is cut says where the whole text is.
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
func IndentJSON(text []byte) Excerpt {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return NewExcerpt(string(text), MaxJSON)
	}
	return NewExcerpt(b.String(), MaxJSON)
}
