package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestFilesAreUpToDate renders the files and compares them with the files in the repository.
func TestFilesAreUpToDate(t *testing.T) {
	const folder = "../../../adapters/rest/apidocs"
	document, err := os.ReadFile(filepath.Join(folder, documentFile))
	must.Succeed(t, err)
	files, err := completeFiles(document)
	must.Succeed(t, err)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date; run make generate", name)
		}
	}
	pages, err := filepath.Glob(filepath.Join(folder, pagesFolder, "*"))
	must.Succeed(t, err)
	for _, name := range pages {
		if name, _ = filepath.Rel(folder, name); files[name] == nil {
			t.Errorf("%s is no page any more; run make generate", name)
		}
	}
}

func TestInvalidDocumentsReturnAnError(t *testing.T) {
	for name, document := range map[string]string{
		"not YAML":                     "a: [",
		"an alias":                     "a: &x 1\nb: *x",
		"paths that are not a mapping": "paths: []",
		"a reference to nothing":       "tags: [{name: a}]\npaths: {/a: {get: {tags: [a], parameters: [{$ref: '#/components/parameters/none'}]}}}",
	} {
		if _, err := renderFiles([]byte(document)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
