package architecture

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

const root = "../.."

func TestTree(t *testing.T) {
	tree := os.DirFS(root)
	all, err := loadSources(tree)
	must.Succeed(t, err)
	if len(all) == 0 {
		t.Fatal("there is no Go file to check")
	}
	checks := map[string]func([]source) []violation{
		"rings":             checkRings,
		"purity":            checkPurity,
		"docs":              checkPackageComments,
		"sizes":             checkSizes,
		"pages":             checkHandlers,
		"callers":           checkCallers,
		"changes":           checkChanges,
		"names":             checkPackageNames,
		"names of comments": checkDocNames,
		"use cases":         func(all []source) []violation { return checkUseCases(all, useCaseFloor, useCaseImports) },
		"waits":             func(all []source) []violation { return checkWaits(all, realWaits) },
	}
	for name, check := range checks {
		t.Run(name, func(t *testing.T) { report(t, check(all)) })
	}
	t.Run("prose", func(t *testing.T) {
		p, err := countProse(tree, all)
		must.Succeed(t, err)
		t.Logf("%.1f of 10,000 words are watched ones", p.perTenThousand())
		report(t, append(checkProse(p, maxWatched), checkPages(p, maxPages)...))
	})
	t.Run("budget", func(t *testing.T) {
		settings, err := fs.ReadFile(tree, "docs/settings.md")
		must.Succeed(t, err)
		m := measureTree(all, settings)
		t.Logf("%+v", m)
		report(t, checkBudget(m, budget))
	})
	t.Run("top folders", func(t *testing.T) {
		found, err := checkTopFolders(tree)
		must.Succeed(t, err)
		report(t, found)
	})
}

// TestModule keeps the table's module path the one of go.mod: were they to differ, our own packages
// would pass for those of another module.
func TestModule(t *testing.T) {
	text, err := os.ReadFile(root + "/go.mod")
	must.Succeed(t, err)
	if !strings.HasPrefix(string(text), "module "+module+"\n") {
		t.Errorf("go.mod does not begin with module %s", module)
	}
}

func report(t *testing.T, found []violation) {
	t.Helper()
	for _, c := range found {
		t.Error(c)
	}
}
