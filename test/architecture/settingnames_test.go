package architecture

import (
	"os"
	"regexp"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

var capitals = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(_[A-Z0-9]+)+\b`)

// TestNoSettingNamesInCore requires that neither core nor ports name an environment variable:
// package settings gives the fields of their Configs names, and translates their errors.
func TestNoSettingNamesInCore(t *testing.T) {
	vars, err := settings.Describe(nil)
	must.Succeed(t, err)
	names := map[string]bool{}
	for _, v := range vars {
		names[v.Name] = true
	}
	all, err := loadSources(os.DirFS(root))
	must.Succeed(t, err)
	for _, s := range all {
		if !isBelow(s.dir(), []string{"core", "ports"}) || s.isTest() || isTestCode(s.dir()) {
			continue
		}
		for _, word := range capitals.FindAllString(string(s.text), -1) {
			if names[word] {
				t.Errorf("%s names the setting %s: only adapters and package settings know how operators set a value",
					s.path, word)
			}
		}
	}
}
