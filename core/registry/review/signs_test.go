package review_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// TestAlone checks what is approved together with others: only what all signs say is harmless, without tools, and
// whose packages were found.
func TestAlone(t *testing.T) {
	t.Parallel()
	text := review.Sign{Words: "Changed property", Name: "description"}
	host := review.Sign{Words: "New host", Name: "https://a.example", Danger: true, Alone: true}
	removed := review.Sign{Words: "Removed host", Name: "https://a.example", Alone: true}
	for _, c := range []struct {
		shown review.Shown
		want  string
	}{
		{review.Shown{}, ""}, {review.Shown{Signs: []review.Sign{text}}, ""}, {review.Shown{Signs: []review.Sign{text, host}}, "new host"},
		{review.Shown{Signs: []review.Sign{removed}}, "removed host"},
		{review.Shown{Review: review.Review{Kind: review.Tools}}, "what has tools"},
		{review.Shown{Lists: []tools.Proposal{{}}, Signs: []review.Sign{text}}, "what has tools"},
		{review.Shown{Review: review.Review{Checks: []review.Check{{State: review.CheckSkipped}}}}, ""},
		{review.Shown{Review: review.Review{Checks: []review.Check{{State: review.CheckFailed}}}, Signs: []review.Sign{text}}, "a package whose check failed"},
	} {
		if got := c.shown.Alone(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.shown.Signs, got, c.want)
		}
	}
}

// TestObjection checks that a refusal names the first dangerous signs alone, each cut.
func TestObjection(t *testing.T) {
	t.Parallel()
	s := review.Shown{Signs: []review.Sign{{Words: "New property", Name: "title"}}}
	if got := s.Objection(); got != "" {
		t.Errorf("without danger: %q", got)
	}
	for _, name := range []string{"A", strings.Repeat("ä", 80), "C", "D"} {
		s.Signs = append(s.Signs, review.Sign{Words: "New secret", Name: name, Danger: true})
	}
	if got, want := s.Objection(), "This is dangerous: New secret A; New secret "+strings.Repeat("ä", 50)+"; New secret C."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLongNames checks that the rows of a list stay short, whatever a document has: its submitter chose the names.
func TestLongNames(t *testing.T) {
	t.Parallel()
	document := `{"remotes":[{"type":"sse","url":"https://` + strings.Repeat("ä", 9000) + `.example/mcp"}]}`
	shown, err := review.Review{Kind: review.NewServer, Document: []byte(document)}.Show(nil)
	if err != nil || len(shown.Signs) == 0 {
		t.Fatalf("%+v, %v", shown.Signs, err)
	}
	for _, one := range shown.Signs {
		if len(one.Name) > 300 || !utf8.ValidString(one.Name) {
			t.Errorf("%s has a name of %d bytes", one.Words, len(one.Name))
		}
	}
}

// TestCompareWaiting checks the order of what waits: danger first, and then the oldest.
func TestCompareWaiting(t *testing.T) {
	t.Parallel()
	shown := func(id registry.ReviewID, hour int, danger bool) review.Shown {
		return review.Shown{
			Review: review.Review{ID: id, SubmittedAt: time.Date(2026, 12, 1, hour, 0, 0, 0, time.UTC)},
			Signs:  []review.Sign{{Danger: danger}},
		}
	}
	all := []review.Shown{shown("d", 2, false), shown("b", 3, true), shown("c", 1, false), shown("a", 3, true), shown("0", 1, true)}
	slices.SortFunc(all, review.CompareWaiting)
	var got string
	for _, s := range all {
		got += string(s.ID)
	}
	if got != "0abcd" {
		t.Errorf("the order is %s", got)
	}
}
