package styletest_test

import (
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/styletest"
)

// TestServe expects the page with its form and its files.
func TestServe(t *testing.T) {
	page := get(t, styletest.Serve(t)+styletest.Path)
	for _, part := range []string{"<h1>Style</h1>", "Finds and changes customers", `action="/console/style"`, "/console.css"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
}

func get(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v", address, response.StatusCode, err)
	}
	return string(body)
}

var (
	sheetLink   = regexp.MustCompile(`<link rel="stylesheet" href="([^"]+)"`)
	comment     = regexp.MustCompile(`(?s)/\*.*?\*/`)
	rootRule    = regexp.MustCompile(`:root \{[^}]*\}`)
	property    = regexp.MustCompile(`--([a-z0-9-]+): ([^;]+);`)
	declaration = regexp.MustCompile(`([a-z-]+): ([^;{}]+)[;}]`)
	color       = regexp.MustCompile(`#[0-9a-f]{3,8}\b|\b(?:rgb|hsl|oklch|color-mix)a?\(`)
	size        = regexp.MustCompile(`^(?:inherit|var\(--f(?:12|13|14|16|20|28)\)(?:/1\.43 system-ui, sans-serif)?)$`)
	space       = regexp.MustCompile(`^(?:(?:0|auto|(?:calc\(-1 \* )?var\(--(?:s4|s8|s12|s16|s24|s40|cell|gutter)\)\)?|calc\(var\(--s40\) \+ var\(--s12\)\))(?: |$))+$`)
	spaced      = regexp.MustCompile(`^(?:margin|padding|gap|row-gap|column-gap)(?:-[a-z]+)?$`)
)

// TestStyleSheet checks that the style sheet has no sizes of text, spaces and colors but those that its
// first rule names, and that these are those of the design: the scales in pixels, and the light colors.
func TestStyleSheet(t *testing.T) {
	base := styletest.Serve(t)
	link := sheetLink.FindStringSubmatch(get(t, base+styletest.Path))
	if link == nil {
		t.Fatal("the page has no style sheet")
	}
	sheet := comment.ReplaceAllString(get(t, base+link[1]), "")
	found := map[string]string{}
	for _, m := range property.FindAllStringSubmatch(rootRule.FindString(sheet), -1) {
		found[m[1]] = m[2]
	}
	want := map[string]string{
		"f12": ".75rem", "f13": ".8125rem", "f14": ".875rem", "f16": "1rem", "f20": "1.25rem", "f28": "1.75rem",
		"s4": ".25rem", "s8": ".5rem", "s12": ".75rem", "s16": "1rem", "s24": "1.5rem", "s40": "2.5rem", "cell": ".625rem",
		"back": "#fbfcfd", "card": "#fff", "line": "#e3e7ec", "text": "#12181f", "quiet": "#5a6572", "link": "#0b57a4",
		"bad": "#b42318", "warn": "#92590a", "good": "#1b6b3f", "button": "var(--link)",
		"shadow": "0 1px 2px rgb(16 24 40 / 5%)",
	}
	for name, value := range want {
		if found[name] != value {
			t.Errorf("--%s is %q, want %q", name, found[name], value)
		}
	}
	maps.DeleteFunc(found, func(name, _ string) bool {
		return len(name) != 2 && len(name) != 3 || name[0] != 'f' && name[0] != 's' || name[1] > '9'
	})
	if len(found) != 12 {
		t.Errorf("the scales have %v", found)
	}
	rest := rootRule.ReplaceAllString(sheet, "")
	for _, literal := range color.FindAllString(rest, -1) {
		t.Errorf("the color %s is not a property of :root", literal)
	}
	for _, m := range declaration.FindAllStringSubmatch(rest, -1) {
		name, value := m[1], strings.TrimSpace(m[2])
		if (name == "font" || name == "font-size") && !size.MatchString(value) || spaced.MatchString(name) && !space.MatchString(value) {
			t.Errorf("%s: %s is not of the scale", name, value)
		}
	}
}
