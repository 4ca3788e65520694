package operating

import (
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

func TestFolderOf(t *testing.T) {
	t.Parallel()
	for want, files := range map[string][]string{
		"/srv/config/": {"/srv/config/a.yaml", "/srv/config/b.yaml"}, "/srv/": {"/srv/a/a.yaml", "/srv/ab/b.yaml"},
		"/": {"/a.yaml", "/srv/b.yaml"}, "": {"", "/srv/b.yaml"}, "rules/": {"rules/a.yaml"},
	} {
		var rules []*ratelimit.Rule
		for _, f := range files {
			rules = append(rules, &ratelimit.Rule{File: f})
		}
		if got := folderOf(slices.Values(rules)); got != want {
			t.Errorf("folderOf(%q) is %q, want %q", files, got, want)
		}
	}
}
