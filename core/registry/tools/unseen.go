package tools

import (
	"fmt"
	"strings"
	"unicode"
)

// WriteOut returns a text with the characters that are not seen written out, for example ⟨U+200B⟩:
// control and formatting characters, fillers, and letters that only tags have. Line feeds, tabs, and
// what joins the parts of an emoji or of a letter stay.
func WriteOut(s string) string {
	if !strings.ContainsFunc(s, isSuspect) {
		return s
	}
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		if isUnseen(runes, i) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
			runes[i] = '⟩' // what follows is next to that now
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// The characters that join or choose a form, which texts need in some places.
const (
	nonJoiner       = '\u200c'
	joiner          = '\u200d'
	firstSelector   = '\ufe00'
	lastSelector    = '\ufe0f'
	combiningKeycap = '\u20e3'
)

// fillers are characters without a shape that are no formatting characters.
const fillers = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"

// isSuspect reports whether a character may be one that is not seen.
func isSuspect(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\r':
		return false
	case r < 0x7f:
		return r < ' '
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Zl, unicode.Zp, unicode.Co) ||
		strings.ContainsRune(fillers, r)
}

// isUnseen reports whether a character of a text is not seen, and not needed where it is.
func isUnseen(text []rune, i int) bool {
	r := text[i]
	if !isSuspect(r) {
		return false
	}
	if i == 0 {
		return true
	}
	before := text[i-1]
	switch {
	case r >= firstSelector && r <= lastSelector:
		return !isPictograph(before) && !strings.ContainsRune("0123456789#*", before)
	case r == joiner && isPictograph(before):
		return i+1 == len(text) || !isPictograph(text[i+1]) || isSuspect(text[i+1])
	case r == joiner, r == nonJoiner:
		return !unicode.In(before, joinedScripts()...)
	}
	return true
}

// joinedScripts are those whose letters take other forms with a joiner or a non-joiner.
func joinedScripts() []*unicode.RangeTable {
	return []*unicode.RangeTable{
		unicode.Arabic, unicode.Bengali, unicode.Devanagari, unicode.Gujarati, unicode.Gurmukhi, unicode.Kannada,
		unicode.Khmer, unicode.Malayalam, unicode.Mongolian, unicode.Oriya, unicode.Sinhala, unicode.Syriac, unicode.Tamil,
		unicode.Telugu,
	}
}

// isPictograph reports whether a character is a symbol, or a part of an emoji.
func isPictograph(r rune) bool {
	return unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r) || r >= firstSelector && r <= lastSelector ||
		r == combiningKeycap || unicode.Is(unicode.Sm, r) || unicode.Is(unicode.Po, r) && r > 0x2000
}
