package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestCompareVersions compares any two versions of a server by a form, as a review does. A version that the
// reader does not find, or of another server, is not compared, and a long difference stays within the page.
func TestCompareVersions(t *testing.T) {
	e, s := start(t)
	ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*")
	publish := func(name, version string, change func(map[string]any)) {
		doc := fixture.NewServerDocument(name, version)
		change(doc)
		ada.PostJSON(t, s, "/v0.1/publish", doc).WantStatus(t, http.StatusOK)
	}
	remote := func(url string) func(map[string]any) {
		return func(doc map[string]any) {
			doc["remotes"] = []map[string]any{{"type": "streamable-http", "url": url}}
		}
	}
	b := newBrowser(t, s)
	const page = "/console/servers/com.example/weather"
	publish("com.example/weather", "1.0.0", remote("https://weather.example.com/mcp"))
	b.Open(page, http.StatusOK).WantNoText("Compare")
	publish("com.example/weather", "1.1.0", remote("https://weather.examp1e.com/mcp"))
	publish("com.example/weather", "1.2.0", func(doc map[string]any) { doc["description"] = "Weather \u202efor all" })
	publish("com.example/weather", "2.0.0", func(doc map[string]any) {
		remotes := make([]map[string]any, 0, 400)
		for i := range 400 {
			remotes = append(remotes, map[string]any{"type": "streamable-http", "url": fmt.Sprintf("https://%d.example.com/%s", i, strings.Repeat("a&b", 50))})
		}
		doc["remotes"] = remotes
	})
	publish("com.example/other", "3.0.0", func(map[string]any) {})
	b.Open(page, http.StatusOK).WantFields("from", "1.2.0", "to", "2.0.0")
	b.Press("Compare", http.StatusOK, "from", "1.0.0", "to", "1.1.0")
	b.WantFields("from", "1.0.0", "to", "1.1.0").WantText("From 1.0.0 to 1.1.0", "Changed", "weather.examp1e.com")
	b.Open(page+"?from=1.1.0&to=1.2.0", http.StatusOK).WantText(`\u202e`)
	b.Open(page+"?from=1.1.0&to=1.1.0", http.StatusOK).WantText("The documents are equal.")
	b.Open(page+"?from=1.1.0", http.StatusOK).WantNoText("The documents are equal.")
	for _, wrong := range []string{"from=9.9.9&to=1.0.0", "from=1.0.0&to=3.0.0", "from=%00&to=1.0.0", "from=1.0.0&to=../x"} {
		b.Open(page+"?"+wrong, http.StatusNotFound)
	}
	b.Open(page+"?from=1.0.0&to=2.0.0", http.StatusOK).WantText("more than fits on this page")
	if n := len(b.Page.Body); n > 100<<10 {
		t.Errorf("the page has %d bytes", n)
	}
}
