package architecture

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"unicode/utf8"
)

// checkWidths finds lines that are too wide. A tab counts as four columns. Lines with a string
// literal or a struct tag that cannot be broken, and the inner lines of raw strings, may be wider.
func checkWidths(all []source) []violation {
	var found []violation
	for _, s := range all {
		if s.isGenerated() {
			continue
		}
		literals := literalLines(s)
		for i, line := range strings.Split(string(s.text), "\n") {
			most := maxCodeColumns
			if strings.HasPrefix(strings.TrimLeft(line, "\t"), "// ") {
				most = maxCommentColumns
			}
			n := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
			if n > most && !isUnbreakable(line, most) && !literals[i+1] {
				found = append(found, violation{
					fmt.Sprintf("%s:%d", s.path, i+1), fmt.Sprintf("has %d columns", n),
					fmt.Sprintf("at most %d", most),
				})
			}
		}
	}
	return found
}

// isUnbreakable reports whether a line is a directive, or a comment of one word, for example a URL.
func isUnbreakable(line string, most int) bool {
	text := strings.TrimLeft(line, "\t")
	return strings.HasPrefix(text, "//go:") || strings.HasPrefix(text, "//nolint:") ||
		strings.HasPrefix(text, "// ") && len(text) > most/2 && !strings.Contains(text[3:], " ")
}

// literalLines returns the lines, counted from one, on which a long string or a struct tag is,
// and those of raw strings.
func literalLines(s source) map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		first, last := s.set.Position(literal.Pos()).Line, s.set.Position(literal.End()).Line
		if first != last || len(literal.Value) > maxBrokenLiteral {
			for line := first; line <= last; line++ {
				lines[line] = true
			}
		}
		return true
	})
	return lines
}
