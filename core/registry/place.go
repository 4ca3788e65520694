package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"
)

// Place is a place in a text.
type Place struct {
	Line   int // from 1
	Column int // from 1, in characters
}

// PlacedIssue is an issue with its place in the text of the document: that of the value that breaks
// the rule, or of the object that lacks one.
type PlacedIssue struct {
	Issue
	Place
}

// PlacedIssues returns the issues of the draft, as Issues does, with their places in the text that
// ParseDraft has read.
func (d Draft) PlacedIssues(text []byte) []PlacedIssue {
	r := d.checkRules()
	issues := r.sortedIssues()
	finder := placeFinder{text: text, place: Place{1, 1}}
	placed := make([]PlacedIssue, len(issues))
	for i, issue := range issues {
		offset := 0 // of an issue about all others
		if i < len(r.found) {
			offset = r.found[i].offset
		}
		placed[i] = PlacedIssue{issue, finder.find(offset)}
	}
	slices.SortStableFunc(placed, func(a, b PlacedIssue) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return placed
}

// placeFinder finds places of a JSON text by their offsets in its compact form. The offsets must
// not decrease, except to 0.
type placeFinder struct {
	text     []byte
	at       int   // the position in the text
	place    Place // of at
	compact  int   // the offset of at in the compact form
	inString bool
}

// find returns the place of an offset in the compact form.
func (f *placeFinder) find(offset int) Place {
	if offset < f.compact {
		return Place{1, 1}
	}
	for f.at < len(f.text) && (f.compact < offset || !f.inString && isSpace(f.text[f.at])) {
		f.step()
	}
	return f.place
}

// step moves on by one character.
func (f *placeFinder) step() {
	c, size := rune(f.text[f.at]), 1
	switch {
	case c >= utf8.RuneSelf:
		_, size = utf8.DecodeRune(f.text[f.at:])
	case c == '\\' && f.inString: // the next byte does not end the string
		f.place.Column++
		f.at++
		f.compact++
	case c == '"':
		f.inString = !f.inString
	}
	if f.inString || !isSpace(f.text[f.at]) {
		f.compact += size
	}
	f.place.Column++
	if c == '\n' {
		f.place = Place{f.place.Line + 1, 1}
	}
	f.at += size
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// SyntaxErrorPlace returns where a text stops being JSON, and false for JSON.
func SyntaxErrorPlace(text []byte) (Place, bool) {
	var value json.RawMessage
	var syntax *json.SyntaxError
	if !errors.As(json.Unmarshal(text, &value), &syntax) {
		return Place{}, false
	}
	return placeOf(text, max(int(syntax.Offset)-1, 0)), true // the offset is behind the byte that is wrong
}

// RefusalPlace returns where a text is wrong that ParseDraft refuses: at the first byte that is not
// UTF-8 or not JSON, at an escape that is no character, or else where the value begins.
func RefusalPlace(text []byte) Place {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return placeOf(text, i)
		}
		i += size
	}
	if place, wrong := SyntaxErrorPlace(text); wrong {
		return place
	}
	if at, problem := findBadEscape(text); problem != "" {
		return placeOf(text, at)
	}
	return placeOf(text, len(text)-len(bytes.TrimLeft(text, " \t\r\n")))
}

// placeOf returns the place of an offset, or of the end of the text.
func placeOf(text []byte, offset int) Place {
	place := Place{1, 1}
	for i := 0; i < min(offset, len(text)); {
		_, size := utf8.DecodeRune(text[i:])
		place.Column++
		if text[i] == '\n' {
			place = Place{place.Line + 1, 1}
		}
		i += size
	}
	return place
}
