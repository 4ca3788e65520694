package site

import (
	"strings"
	"testing"
)

func TestExcerpt(t *testing.T) {
	for text, want := range map[string]Excerpt{
		"": {"", false}, "abcd": {"abcd", false}, "abcde": {"abcd", true}, "abcé": {"abc", true}, "éé": {"éé", false},
		"ééé": {"éé", true},
		"日本":  {"日", true}, "\xff\xff\xff\xff\xff": {"\xff\xff\xff\xff", true},
	} {
		if got := NewExcerpt(text, 4); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	if got := IndentJSON([]byte(`{"a":[1]}`)); got.Cut || got.Text != "{\n  \"a\": [\n    1\n  ]\n}" {
		t.Errorf("indented: %+v", got)
	}
	if got := IndentJSON([]byte(`"` + strings.Repeat("é", MaxJSON) + `"`)); !got.Cut || len(got.Text) != MaxJSON-1 {
		t.Errorf("a long text has %d bytes, cut %t", len(got.Text), got.Cut)
	}
}

// TestEscapeDirections: a text cannot look like another one by characters that change its
// direction.
func TestEscapeDirections(t *testing.T) {
	got := IndentJSON([]byte("[\"a\u202eb\u2066c\", \"خادم\"]"))
	if want := "[\n  \"a\\u202eb\\u2066c\",\n  \"خادم\"\n]"; got.Text != want {
		t.Errorf("the text is %q, want %q", got.Text, want)
	}
}
