package styletest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/styletest"
)

// TestServe expects the page with its form and its files.
func TestServe(t *testing.T) {
	base := styletest.Serve(t)
	response, err := http.Get(base + styletest.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", response.StatusCode, err)
	}
	for _, part := range []string{"<h1>Style</h1>", "Finds and changes customers", `action="/console/style"`, "/console.css"} {
		if !strings.Contains(string(page), part) {
			t.Errorf("the page lacks %s", part)
		}
	}
}
