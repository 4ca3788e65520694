package docs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestPictures checks that each picture of the pages is small, and that a page shows it.
func TestPictures(t *testing.T) {
	t.Parallel()
	const most = 150_000 // bytes
	pictures, err := filepath.Glob(filepath.Join(root, "docs/*/*.png"))
	must.Succeed(t, err)
	pages := readPages(t)
	for _, picture := range pictures {
		info, err := os.Stat(picture)
		must.Succeed(t, err)
		if info.Size() > most {
			t.Errorf("%s has %d bytes, the most are %d", picture, info.Size(), most)
		}
		link := filepath.Base(filepath.Dir(picture)) + "/" + filepath.Base(picture) + ")"
		if !slices.ContainsFunc(slices.Collect(maps.Values(pages)), func(text string) bool {
			return strings.Contains(text, link)
		}) {
			t.Errorf("no page shows %s", picture)
		}
	}
	if len(pictures) == 0 || !strings.Contains(pages["README.md"], ".png)") {
		t.Error("there is no picture, or none in the README")
	}
}
