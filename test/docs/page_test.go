package docs

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestParsePage checks every marker and kind of block.
func TestParsePage(t *testing.T) {
	const page = "# Page\n```text\nno command yet\n```\n<!-- docs: in another terminal: make run -->\n" +
		"```sh\necho a\necho b\n```\nprose\n```text\na\n```\n<!-- docs: not printed -->\n```json\n{}\n```\n```\nb\n```\n" +
		"<!-- docs: ends with 1 -->\n```sh\nfalse\n```\n```yaml\na: b\n```\n<!-- docs: not run, it takes a day -->\n```sh\nsleep 86400\n```\n" +
		"<!-- docs: in its own terminal -->\n```sh\nserve\n```\n<!-- docs: file a/b.go -->\n```go\npackage b\n```\n```go\nno file\n```\n"
	got, err := parsePage(page)
	must.Succeed(t, err)
	if len(got) != 5 || got[4].file != "a/b.go" || got[4].command != "package b\n" || got[3].file != "" ||
		got[0].command != "make run\n" || !got[0].terminal || got[1].command != "echo a\necho b\n" ||
		got[1].line != 7 || got[1].terminal ||
		len(got[1].outputs) != 2 || got[1].outputs[1].text != "b\n" || !got[2].fails || len(got[2].outputs) != 0 ||
		got[3].command != "serve\n" || !got[3].terminal || got[3].fails {
		t.Errorf("parsePage returned %+v", got)
	}
	if got, err := parsePage(page + "<!-- docs: run elsewhere, at a terminal -->\n"); err != nil || len(got) != 0 {
		t.Errorf("a page with the marker run elsewhere has the blocks %+v, %v, want no blocks", got, err)
	}
	for _, wrong := range []string{"```sh\necho", "<!-- docs: maybe -->\n", "<!-- docs: ends with 0 -->\n"} {
		if _, err := parsePage(wrong); err == nil || !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("%q: error is %v, want an error that begins with the line", wrong, err)
		}
	}
}

// TestFirstMissing checks the comparison of expected and actual output.
func TestFirstMissing(t *testing.T) {
	for _, test := range []struct{ want, got, missing string }{
		{"a b\n", "x a\n b", ""},
		{"a…c\nd\n", "abcd", ""},
		{"d\na\n", "a d", "a"},
		{`{"left":3,"reset":"12s"}`, `{"left": 3, "reset": "7s"}`, ""},
		{`{"left":3}`, `{"left":4}`, `{"left":3}`},
		{
			"at 2026-11-21T01:49:32.5Z by 3f30e8b6-c17c-44ae-8374-84c863f8b10c",
			"at 2027-01-02T03:04:05Z by 00000000-0000-0000-0000-000000000000", "",
		},
		{"nothing", "", "nothing"},
	} {
		if got := firstMissing(test.want, test.got); got != test.missing {
			t.Errorf("firstMissing(%q, %q) = %q, want %q", test.want, test.got, got, test.missing)
		}
	}
}

// TestFirstMissingLine checks that the lines of a log may have any order.
func TestFirstMissingLine(t *testing.T) {
	const log = "msg=loaded rules=2\nmsg=ready port=1\n"
	if got := firstMissingLine("msg=ready port=1\nmsg=loaded rules=2\n", log); got != "" {
		t.Errorf("%q is missing, want all lines found", got)
	}
	if got := firstMissingLine("msg=ready port=1\nmsg=loaded rules=3\n", log); got != "msg=loaded rules=3" {
		t.Errorf("%q is missing, want the second line", got)
	}
}
