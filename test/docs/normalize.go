package docs

import (
	"regexp"
	"strings"
)

// volatile lists the values that differ in each run, and the text that replaces them.
var volatile = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`"\d+s"`), "SECONDS"},
	{regexp.MustCompile(`((?i:ratelimit-reset): )\d+`), "${1}SECONDS"},
	{regexp.MustCompile(`pid=\d+`), "pid"},
	{regexp.MustCompile(`version=[^\s"]*`), "version"},
	{regexp.MustCompile(`\d+\.\d{2,}(ms\b)?`), "NUMBER"},
	{regexp.MustCompile(`\b\d{6}\b`), "CODE"},
	{regexp.MustCompile(`"[0-9a-f]{8}"|\b[0-9a-f]{8}\n`), "SUM"},
	{regexp.MustCompile(`\s+`), ""},
}

// normalize replaces the values that differ in each run and removes white space.
func normalize(s string) string {
	for _, v := range volatile {
		s = v.pattern.ReplaceAllString(s, v.replacement)
	}
	return s
}

// firstMissing returns the first piece of want that got does not contain after the pieces before
// it, or "" if got contains all of them in order. A line end or … in want separates pieces.
func firstMissing(want, got string) string {
	rest := normalize(got)
	for line := range strings.Lines(want) {
		for piece := range strings.SplitSeq(line, "…") {
			_, after, found := strings.Cut(rest, normalize(piece))
			if !found {
				return strings.TrimSpace(piece)
			}
			rest = after
		}
	}
	return ""
}

// firstMissingLine returns the first line of want that a log does not contain, or "" if it contains
// all of them. The lines may have any order: parts of a service that start together log when they
// are ready.
func firstMissingLine(want, log string) string {
	for line := range strings.Lines(want) {
		if missing := firstMissing(line, log); missing != "" {
			return missing
		}
	}
	return ""
}
