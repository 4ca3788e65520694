package site

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
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
	e.Text = EscapeInvisible(e.Text)
	return e
}

// EscapeInvisible returns a text that people give, as a page shows it: the characters that are not
// seen, or that change the direction of text, are written as in JSON, since with them a text looks
// like another one. JSON stays the same value. A joiner stays between letters that are not ASCII,
// because some languages and emoji need it.
func EscapeInvisible(text string) string {
	if !strings.ContainsFunc(text, isUnseen) {
		return text
	}
	var b strings.Builder
	all := []rune(text)
	for i, r := range all {
		joins := (r == '\u200c' || r == '\u200d') && i > 0 && i+1 < len(all) && isJoined(all[i-1]) && isJoined(all[i+1])
		switch {
		case joins || !isUnseen(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// isJoined reports whether a joiner next to a character can mean something.
func isJoined(r rune) bool { return r > unicode.MaxASCII && r != utf8.RuneError && !isUnseen(r) }

// blanks are the letters and symbols that look like nothing.
const blanks = "\u034f\u115f\u1160\u17b4\u17b5\u2028\u2029\u2800\u3164\uffa0"

// isUnseen reports whether a character is not seen: those of the category Cf but for the signs that
// stand before numbers, controls but for those that end lines, and letters that look like nothing.
func isUnseen(r rune) bool {
	switch {
	case r < unicode.MaxASCII:
		return r < ' ' && r != '\n' && r != '\r' && r != '\t'
	case unicode.Is(unicode.Cf, r):
		return !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
	}
	return unicode.Is(unicode.Cc, r) || strings.ContainsRune(blanks, r)
}
