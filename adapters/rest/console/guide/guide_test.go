package guide

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/docs"
	"github.com/tollgate-dev/tollgate/test/must"
)

var tag = regexp.MustCompile(`<[a-z/][^>]*>|<!--`)

// allowed are the tags of rendered pages. Nothing in a page runs or loads anything.
var allowed = regexp.MustCompile(`^<(/?(h[1-6]|p|ul|ol|li|a|code|pre|strong|em|del|table|thead|tbody|tr|th|td|blockquote|hr|br|img)\b[^>]*)>$`)

// TestNoHTML checks that HTML in the pages is shown as text, but for anchors.
func TestNoHTML(t *testing.T) {
	t.Parallel()
	pages := 0
	must.Succeed(t, fs.WalkDir(docs.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".md") {
			return err
		}
		pages++
		made, err := render(name)
		for _, found := range tag.FindAllString(string(made.Content), -1) {
			if !allowed.MatchString(found) || strings.Contains(found, "onerror") || strings.Contains(found, "javascript:") {
				t.Errorf("%s has %s", name, found)
			}
		}
		if made.Title == "" {
			t.Errorf("%s has no title", name)
		}
		return err
	}))
	if pages < 80 {
		t.Errorf("there are %d pages", pages)
	}
}
