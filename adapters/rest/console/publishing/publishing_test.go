package publishing

import (
	"strings"
	"testing"
)

// TestExcerpt checks that a part of a line is cut between characters.
func TestExcerpt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 100)
	for _, c := range []struct {
		line   string
		column int
		want   string
	}{
		{"", 1, ""},
		{"  \"a\": 1,\r", 3, "\"a\": 1,"},
		{long, 1, strings.Repeat("é", 60) + "…"},
		{long, 100, "…" + strings.Repeat("é", 21)},
		{long, 50, "…" + strings.Repeat("é", 71)},
		{"short", 200, "…"},
	} {
		if got := excerpt(c.line, c.column); got != c.want {
			t.Errorf("column %d of %.20q: %q, want %q", c.column, c.line, got, c.want)
		}
	}
}

// TestIssuesFit checks that the page shows as many mistakes as there is room for, and counts all.
func TestIssuesFit(t *testing.T) {
	t.Parallel()
	for room, want := range map[int]int{-1: 0, 0: 0, 2: 2, 3: 3, 9: 3} {
		view := newIssuesView(make([]issueView, 3), room)
		if len(view.Shown) != want || view.All != 3 || view.More != 3-want {
			t.Errorf("room for %d: %d of %d, and %d more", room, len(view.Shown), view.All, view.More)
		}
	}
}

func TestCheckDocument(t *testing.T) {
	t.Parallel()
	const good = `{"name":"com.example/a","description":"d","version":"1.0.0"}`
	for text, wrong := range map[string]bool{good: false, "{": true, "{}": true, `{"name":1}`: true} {
		if c := checkDocument([]byte(text)); (len(c.errors) > 0) != wrong {
			t.Errorf("%s: %+v", text, c.errors)
		}
	}
	c := checkDocument([]byte("{\n  \"name\": 1}"))
	if last := len(c.errors) - 1; last < 0 || c.errors[last].Line != 2 || c.errors[last].Text != `"name": 1}` {
		t.Errorf("the mistakes are %+v", c.errors)
	}
}
