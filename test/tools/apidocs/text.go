package main

import "strings"

// splitParagraphs splits a text at its empty lines.
func splitParagraphs(text string) []string { return strings.Split(strings.TrimSpace(text), "\n\n") }

// span is a part of a sentence: plain text, code, or a link to a place on the page.
type span struct {
	Text, Link string
	Code       bool
}

// splitSpans splits a sentence into plain text, `code` and [text](#link).
func splitSpans(text string) []span {
	var list []span
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			list = append(list, span{Text: part, Code: true})
			continue
		}
		list = append(list, splitLinks(part)...)
	}
	return list
}

// splitLinks splits a text without code at its links.
func splitLinks(text string) []span {
	var list []span
	for text != "" {
		before, rest, hasBracket := strings.Cut(text, "[")
		label, rest, hasTarget := strings.Cut(rest, "](#")
		target, after, hasEnd := strings.Cut(rest, ")")
		if !hasBracket || !hasTarget || !hasEnd {
			return append(list, span{Text: text})
		}
		if before != "" {
			list = append(list, span{Text: before})
		}
		list = append(list, span{Text: label, Link: target})
		text = after
	}
	return list
}
