package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestTableLayouts checks the layout of one table on terminals of different widths.
func TestTableLayouts(t *testing.T) {
	tab := Table{Header: []string{"NAME", "VALUE", "MEANING"}, Rows: [][]string{
		{"A_RATHER_LONG_NAME", "5s", "how long a client may take to send its request"},
		{"B", "https://example.com/path", "日本 of it"},
	}}
	for width, want := range map[int]string{
		0: `
NAME                VALUE                     MEANING
A_RATHER_LONG_NAME  5s                        how long a client may take to send its request
B                   https://example.com/path  日本 of it
`,
		84: `
NAME                VALUE                     MEANING
A_RATHER_LONG_NAME  5s                        how long a client may take to send its
                                              request
B                   https://example.com/path  日本 of it
`,
		60: `
NAME                VALUE
    MEANING
A_RATHER_LONG_NAME  5s
    how long a client may take to send its request
B                   https://example.com/path
    日本 of it
`,
		42: `
NAME                VALUE
    MEANING
A_RATHER_LONG_NAME  5s
    how long a client may take to send its
    request
B                   https://example.com/
                    path
    日本 of it
`,
		30: `
NAME     A_RATHER_LONG_NAME
VALUE    5s
MEANING  how long a client may
         take to send its
         request

NAME     B
VALUE    https://example.com/
         path
MEANING  日本 of it
`,
	} {
		var out bytes.Buffer
		if err := tab.printWithin(&out, width); err != nil || out.String() != want[1:] {
			t.Errorf("at %d columns: %v\n%s", width, err, &out)
		}
	}
}

// TestTableKeepsAll checks that a table loses no text on a terminal, and that no line is wider than
// the terminal.
func TestTableKeepsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "columns")
		tab := Table{Header: slices.Repeat([]string{"TITLE"}, n)}
		cell := rapid.StringMatching(`[a-zä/,]{0,30}( [a-zé]{0,12}){0,6}`)
		tab.Rows = rapid.SliceOfN(rapid.SliceOfN(cell, n, n), 0, 5).Draw(t, "rows")
		width := rapid.IntRange(minColumnWidth+len("TITLE")+columnGap, 200).Draw(t, "width")
		var out bytes.Buffer
		must.Succeed(t, tab.printWithin(&out, width))
		want := ""
		for _, row := range tab.Rows {
			want += strings.Join(row, "")
		}
		if sortedLetters(out.String()) != sortedLetters(want) {
			t.Fatalf("%q is printed as\n%s", tab.Rows, &out)
		}
		for line := range strings.Lines(out.String()) {
			if wide := uniseg.StringWidth(strings.TrimSuffix(line, "\n")); wide > width {
				t.Fatalf("a line has %d columns of %d:\n%s", wide, width, &out)
			}
		}
	})
}

// sortedLetters returns the sorted characters that occur in cells and not in titles.
func sortedLetters(s string) string {
	var kept []rune
	for _, r := range s {
		if unicode.IsLower(r) || r == '/' || r == ',' {
			kept = append(kept, r)
		}
	}
	slices.Sort(kept)
	return string(kept)
}

func TestHangText(t *testing.T) {
	for _, c := range []struct {
		columns string
		width   int
		want    string
	}{
		{"eight     ", 0, "eight     a text of some words that goes on"},
		{"eight     ", 80, "eight     a text of some words that goes on"},
		{"eight     ", 32, "eight     a text of some words\n          that goes on"},
		{"eight          ", 30, "eight\n    a text of some words that\n    goes on"},
	} {
		if got := HangText(c.columns, "a text of some words that goes on", c.width); got != c.want {
			t.Errorf("after %q, %d columns wide: %q, want %q", c.columns, c.width, got, c.want)
		}
	}
}

// TestTimes checks that tables for people have times as distances, and leave other texts alone.
func TestTimes(t *testing.T) {
	var out strings.Builder
	row := []string{time.Now().Add(-3 * time.Hour).UTC().Format(time.RFC3339Nano), "2026-01-31", "never"}
	must.Succeed(t, PrintTable(&out, Table{Header: []string{"A", "B", "C"}, Rows: [][]string{row}}))
	if got := strings.Join(strings.Fields(out.String()), " "); got != "A B C 3 hours ago 2026-01-31 never" || row[0] == "3 hours ago" {
		t.Errorf("the table is %q", got)
	}
}

// TestCut checks that the last column is shortened to the terminal.
func TestCut(t *testing.T) {
	tab := Table{Header: []string{"NAME", "TEXT"}, Rows: [][]string{{"a", strings.Repeat("wörter ", 20)}, {"b", "短い"}}, Cut: true}
	tab.cutLast(40)
	for i, want := range []int{34, 4} {
		if got := uniseg.StringWidth(tab.Rows[i][1]); got != want {
			t.Errorf("row %d is %d columns wide, want %d: %s", i, got, want, tab.Rows[i][1])
		}
	}
}
