package apidocs_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// maxPage is the size in bytes that no page exceeds.
const maxPage = 300_000

// readPages returns the text of all pages by address: the one that lists all and those that its menu has.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	_, _, index := get(t, "/docs")
	pages := map[string]string{"/docs": index}
	_, links := readPage(t, index)
	for _, link := range links {
		address, _, _ := strings.Cut(link, "#")
		if name, inDocs := strings.CutPrefix(address, "/docs/"); !inDocs || pages[address] != "" || strings.HasPrefix(name, "guide/") {
			continue
		}
		status, header, text := get(t, address)
		if status != 200 || header("Content-Type") != "text/html; charset=utf-8" {
			t.Fatalf("%s: %d %s", address, status, header("Content-Type"))
		}
		pages[address] = text
	}
	return pages
}

// TestPages expects a page for each part of the document, none too large, with every operation and
// schema, without dead links, that loads nothing.
func TestPages(t *testing.T) {
	pages, ids, links := readPages(t), map[string]map[string]bool{}, map[string][]string{}
	for address, text := range pages {
		ids[address], links[address] = readPage(t, text)
		if len(text) > maxPage {
			t.Errorf("%s has %d bytes, want at most %d", address, len(text), maxPage)
		}
	}
	document := loadDocument(t)
	for _, tag := range document.Tags {
		if pages["/docs/"+tag.Name] == "" {
			t.Errorf("the part %s has no page", tag.Name)
		}
	}
	onPage := func(id, want string) bool {
		for address, text := range pages {
			if address != "/docs" && ids[address][id] && strings.Contains(text, want) {
				return true
			}
		}
		return false
	}
	for path, item := range document.Paths.Map() {
		for method, o := range item.Operations() {
			// The links that the page had when it was one lead on from the list.
			if id := strings.TrimSuffix(o.OperationID, "V0"); !ids["/docs"][id] || !onPage(id, "<code>"+path+"</code>") {
				t.Errorf("%s %s is not on a page", method, path)
			}
		}
	}
	for name := range document.Components.Schemas {
		if id := "schema-" + name; !ids["/docs"][id] || !onPage(id, name) {
			t.Errorf("schema %s is not on a page", name)
		}
	}
	for address, list := range links {
		for _, link := range list {
			to, id, _ := strings.Cut(link, "#")
			if to == "" {
				to = address
			}
			known := to == "/openapi.yaml" || to == "/openapi.json" || to == "/docs/guide/"
			if !known && (pages[to] == "" || id != "" && !ids[to][id]) {
				t.Errorf("%s: the link to %s is dead", address, link)
			}
		}
	}
	if status, _, _ := get(t, "/docs/none"); status != 404 {
		t.Errorf("a part that does not exist: %d", status)
	}
	if status, _, _ := get(t, "/docs/..%2fpage.policy"); status != 404 {
		t.Errorf("a name that leads out of the folder: %d", status)
	}
}

// readPage returns the ids and links of a page. It fails the test for elements that load or run
// something.
func readPage(t *testing.T, text string) (ids map[string]bool, links []string) {
	t.Helper()
	ids = map[string]bool{}
	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		if tokens.Next() == html.ErrorToken {
			if !errors.Is(tokens.Err(), io.EOF) {
				t.Fatal(tokens.Err())
			}
			return ids, links
		}
		token := tokens.Token()
		switch token.Data {
		case "script", "link", "img", "iframe", "object", "embed", "base", "form":
			if token.Type != html.TextToken {
				t.Errorf("the page has <%s>", token.Data)
			}
		}
		for _, a := range token.Attr {
			switch {
			case a.Key == "id" && ids[a.Val]:
				t.Errorf("id %s is not unique", a.Val)
			case a.Key == "id":
				ids[a.Val] = true
			case a.Key == "href":
				links = append(links, a.Val)
			case a.Key == "src" || a.Key == "style" || strings.HasPrefix(a.Key, "on"):
				t.Errorf("the page has %s=%q", a.Key, a.Val)
			}
		}
	}
}

// TestPolicy expects the policy to allow the style of the page and nothing else.
func TestPolicy(t *testing.T) {
	_, header, text := get(t, "/docs/registry")
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(text)
	if style == nil || strings.Contains(style[1], "url(") || strings.Contains(style[1], "@import") {
		t.Fatalf("style is %v", style)
	}
	sum := sha256.Sum256([]byte(style[1]))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	if got := header("Content-Security-Policy"); got != want {
		t.Errorf("policy is %s, want %s", got, want)
	}
}

// TestPageContainsTheDocument looks for a row of each kind.
func TestPageContainsTheDocument(t *testing.T) {
	var text string
	for _, one := range readPages(t) {
		text += one
	}
	text = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(text, " ")
	text = html.UnescapeString(strings.Join(strings.Fields(text), " "))
	for _, want := range []string{
		"limit query integer Maximum number of entries of a page. A page ends early if documents are large. A search or a list of updates also ends a page after 10,000 entries were checked, possibly without a result. Only a response without nextCursor is the last page. 1 to 100; default 30",
		"name required string Reverse-DNS namespace, a slash and the server's name 3 to 200 characters; pattern ^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$; such as com.example/weather",
		"packages array of Package How to install the server",
		"repository Repository The location of the source code",
		"metadata.count required integer Number of entries of this page at least 0",
		"server required Document",
		"ServerDetail or ImportedDocument",
		"theme string Any theme if left out one of light, dark",
		"variables object of Input",
		"requiresMFA required boolean always false",
		`"status": "deprecated"`,
		"POST /v0.1/publish also as /v0/publish",
		"grant to publish. Needs an access token. curl -s \"$TOLLGATE/v0.1/publish\" \\ -H \"Authorization: Bearer $TOKEN\" \\ -H 'Content-Type: application/json' \\ -d '{",
		"curl -s -X PATCH \"$TOLLGATE/v0.1/servers/com.example%2Fweather/versions/1.0.0/status\"",
		"curl -s \"$TOLLGATE/v2/api/methods.json\"",
		"Response 200 The version as it was published with ETag PublishedServer application/json {",
		"Errors Error Status Meaning",
		"422 The document breaks rules",
		"429 Too many requests with Retry-After Example",
		"Every response: X-Request-Id , X-RateLimit-Limit , X-RateLimit-Remaining , X-RateLimit-Reset",
		"second factor due:",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
}
