package docs

import (
	"regexp"
	"strings"
)

// volatile is what differs each time, and what is put in its place.
var volatile = []struct {
	is    *regexp.Regexp
	place string
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

func loose(s string) string {
	for _, v := range volatile {
		s = v.is.ReplaceAllString(s, v.place)
	}
	return s
}

// missing returns the first piece of what is said that was not printed, in
// order; empty where all of it was.
func missing(said, got string) string {
	rest := loose(got)
	for line := range strings.Lines(said) {
		for piece := range strings.SplitSeq(line, "…") {
			_, after, found := strings.Cut(rest, loose(piece))
			if !found {
				return strings.TrimSpace(piece)
			}
			rest = after
		}
	}
	return ""
}
