package site

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/docs"
)

var notInHeading = regexp.MustCompile(`[^a-z0-9 -]`)

// TestGuidesOfPages checks that each guide about a page exists, with its heading.
func TestGuidesOfPages(t *testing.T) {
	t.Parallel()
	for path, guide := range guides {
		name, anchor, _ := strings.Cut(guide, "#")
		if strings.HasSuffix(name, "/") {
			name += "README"
		}
		text, err := docs.Files.ReadFile(name + ".md")
		found := anchor == ""
		for line := range strings.Lines(string(text)) {
			if heading, ok := strings.CutPrefix(line, "#"); ok {
				heading = strings.TrimSpace(strings.TrimLeft(heading, "#"))
				found = found || strings.ReplaceAll(notInHeading.ReplaceAllString(strings.ToLower(heading), ""), " ", "-") == anchor
			}
		}
		if err != nil || !found {
			t.Errorf("the guide %s about the page %q is not there: %v", guide, path, err)
		}
	}
	for path, want := range map[string]string{
		"/console/operator/access/explain": "access#explain-and-check-by-command", "/console/operator/people/1": "console#for-operators",
		"/console/": "console#pages",
	} {
		if got := guideOf(path); got != GuidePath+want {
			t.Errorf("the guide about %s is %s, want %s", path, got, want)
		}
	}
}
