// Command apidocs writes the files that adapters/rest/apidocs serves: the parts of the OpenAPI document
// that belong to kinds of objects, the document as JSON, an HTML page for people for each part, and the
// Content-Security-Policy of these pages. Its argument is the folder of openapi.yaml. It does not check
// that the document is valid OpenAPI; a test of test/acceptance does.
package main

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/test/kinddocs"
)

// The file that is read and completed, and the files that are written next to it.
const (
	documentFile = "openapi.yaml"
	jsonFile     = "openapi.json"
	pagesFolder  = "pages"
	indexName    = "index" // of the page that lists all
	policyFile   = "page.policy"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: apidocs FOLDER")
		os.Exit(2)
	}
	if err := writeFiles(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate the API documentation:", err)
		os.Exit(1)
	}
}

// writeFiles completes the OpenAPI document in a folder and writes the other files there.
func writeFiles(folder string) error {
	document, err := os.ReadFile(filepath.Join(folder, documentFile)) // #nosec G304 -- the caller names the folder
	if err != nil {
		return err
	}
	files, err := completeFiles(document)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(folder, pagesFolder)); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(folder, pagesFolder), 0o755); err != nil { // #nosec G301 -- the files are public
		return err
	}
	for name, content := range files {
		// #nosec G306 -- the files are public
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// completeFiles returns the content of the written files by name, for a document whose parts of kinds
// may be out of date.
func completeFiles(document []byte) (map[string][]byte, error) {
	document, err := kinddocs.Complete(document, kinddocs.All())
	if err != nil {
		return nil, err
	}
	files, err := renderFiles(document)
	if err == nil {
		files[documentFile] = document
	}
	return files, err
}

// renderFiles returns the content of the files next to the document by name.
func renderFiles(document []byte) (map[string][]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, fmt.Errorf("%s: %w", documentFile, err)
	}
	json, err := toJSON(&root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", documentFile, err)
	}
	pages, policy, err := renderPages(&root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", documentFile, err)
	}
	files := map[string][]byte{jsonFile: json, policyFile: []byte(policy)}
	for name, page := range pages {
		files[path.Join(pagesFolder, cmp.Or(name, indexName)+".html")] = page
	}
	return files, nil
}
