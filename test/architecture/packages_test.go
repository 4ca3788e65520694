package architecture

import (
	"flag"
	"os"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

var update = flag.Bool("update", false, "write docs/packages.md")

// TestPackagesPage checks that docs/packages.md is up to date. With -update it writes the page.
func TestPackagesPage(t *testing.T) {
	all, err := loadSources(os.DirFS(root))
	must.Succeed(t, err)
	const file = root + "/docs/packages.md"
	want := documentPackages(all)
	if *update {
		must.Succeed(t, os.WriteFile(file, []byte(want), 0o644))
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("docs/packages.md is not up to date (%v); run make generate", err)
	}
}

func TestDocumentPackages(t *testing.T) {
	all := parseTree(t, map[string]string{
		"core/fault/fault.go":   "// Package fault has the kinds of failure. It has no more.\npackage fault",
		"core/fault/other.go":   "package fault",
		"core/fault/z_test.go":  "// Package fault_test is not listed.\npackage fault_test",
		"cmd/x/main.go":         "// Command x runs\n// things | and more.\n//\n// Usage: none.\npackage main",
		"ports/atest/a.go":      "// Package atest is a suite.\npackage atest",
		"core/fault/deep/go.go": "//go:build linux\n\n// Package deep is deep.\npackage deep",
	})
	const want = `# Packages

The first sentence of each package's comment, written by ` + "`make generate`. [architecture.md](architecture.md)" +
		` explains the
rings; the tests are in ` + "`test`" + `.

## cmd

| package | |
|---|---|
| ` + "`x`" + ` | Command x runs things \| and more |

## core

| package | |
|---|---|
| ` + "`fault/deep`" + ` | is deep |
| ` + "`fault`" + ` | has the kinds of failure |
`
	if got := documentPackages(all); got != want {
		t.Errorf("got %s", got)
	}
}
