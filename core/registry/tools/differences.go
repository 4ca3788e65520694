package tools

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Kind says what became of a tool, or of what else a model reads.
type Kind string

// The kinds.
const (
	Added   Kind = "new"
	Changed Kind = "changed"
	Removed Kind = "removed"
)

// Danger is how much a difference matters: the greatest first.
type Danger uint8

// The dangers.
const (
	Harmless      Danger = iota // less than before: a tool that is removed, a schema that takes less, a hint that is given
	Words                       // a text for people, or that of a schema's result
	Model                       // a text that the model reads
	TakesMore                   // a schema that takes more than before
	WithdrawnHint               // a hint of safety that is not given any more
	Destroys                    // a new tool that may destroy something
)

// String returns the danger as the API names it.
func (d Danger) String() string {
	return [...]string{"harmless", "words", "model", "takes-more", "withdrawn-hint", "destroys"}[d]
}

// Difference is one difference of two lists.
type Difference struct {
	Kind     Kind
	Tool     string // its name; empty for what else a model reads
	Danger   Danger
	Sentence string  // for people: characters that are not seen are written out
	Text     []Piece // a text that changed; nil for any other difference
}

// IsDangerous reports whether a reviewer sees the difference in red.
func (d Difference) IsDangerous() bool { return d.Danger >= TakesMore }

// Piece is a part of a text that changed.
type Piece struct {
	Kind Kind   // Removed, Added, or empty for a part that both have
	Text string // characters that are not seen are written out
}

// Compare returns the differences of two lists, the most dangerous first, then by the names of the
// tools. Lists of equal marks have no differences.
func Compare(before, after List) []Difference {
	var all []Difference
	for _, t := range after.Tools {
		switch old := before.Find(t.Name); {
		case old == nil:
			all = append(all, newTool(t))
		case old.Mark != t.Mark:
			all = append(all, compareTools(*old, t)...)
		}
	}
	for _, t := range before.Tools {
		if after.Find(t.Name) == nil {
			all = append(all, Difference{
				Kind: Removed, Tool: t.Name, Sentence: fmt.Sprintf("the tool %s is removed", quote(t.Name)),
			})
		}
	}
	all = append(all, compareContext(before, after)...)
	slices.SortStableFunc(all, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(b.Danger, a.Danger), strings.Compare(a.Tool, b.Tool))
	})
	return all
}

// newTool returns the difference that a new tool makes.
func newTool(t Tool) Difference {
	d := Difference{Kind: Added, Tool: t.Name, Danger: Model}
	what := "which says that it only reads"
	switch _, said := t.Says(Destructive); {
	case !t.IsDestructive():
		if readOnly, _ := t.Says(ReadOnly); !readOnly {
			what = "which says that it is not destructive"
		}
	case said:
		d.Danger, what = Destroys, "which is destructive"
	default:
		d.Danger, what = Destroys, "which does not say that it is not destructive"
	}
	d.Sentence = fmt.Sprintf("there is a new tool %s, %s", quote(t.Name), what)
	return d
}

// compareTools returns the differences of two tools of one name.
func compareTools(before, after Tool) []Difference {
	var all []Difference
	add := func(d Danger, format string, args ...any) {
		all = append(all, Difference{
			Kind: Changed, Tool: after.Name, Danger: d,
			Sentence: fmt.Sprintf("the tool %s "+format, append([]any{quote(after.Name)}, args...)...),
		})
	}
	for _, h := range hintsOf() {
		compareHints(before, after, h, add)
	}
	for _, c := range compareSchemas(before.fields.Inner(fieldInput), after.fields.Inner(fieldInput)) {
		add(c.danger, "%s", c.sentence)
		all[len(all)-1].Text = c.text
	}
	if before.Description() != after.Description() {
		add(Model, "has another description")
		all[len(all)-1].Text = compareTexts(before.Description(), after.Description())
	}
	if before.Title() != after.Title() {
		add(Words, "has another title: %s in place of %s", quote(after.Title()), quote(before.Title()))
	}
	if !equal(before.fields[fieldOutput], after.fields[fieldOutput]) {
		add(Words, "has another schema of its result")
	}
	if len(all) == 0 {
		add(Words, "is written in another way") // an empty text in place of no text
	}
	return all
}

// compareHints adds the difference of one hint.
func compareHints(before, after Tool, h Hint, add func(Danger, string, ...any)) {
	old, oldSaid := before.Says(h)
	value, said := after.Says(h)
	safe := h == ReadOnly || h == Idempotent // the value of a hint that promises something
	switch {
	case old == value && oldSaid == said:
	case oldSaid && old == safe:
		add(WithdrawnHint, "withdraws its hint %s: %t", h, old)
	case said && value == safe:
		add(Harmless, "has a new hint, %s: %t", h, value)
	default:
		add(Words, "changes its hint %s, which promises nothing", h)
	}
}

// compareContext returns the differences of what a model reads besides the tools.
func compareContext(before, after List) []Difference {
	var all []Difference
	if before.Instructions != after.Instructions {
		all = append(all, Difference{
			Kind: Changed, Danger: Model, Sentence: "the instructions of the server changed",
			Text: compareTexts(before.Instructions, after.Instructions),
		})
	}
	all = append(all, compareNamed("prompt", before.Prompts, after.Prompts)...)
	return append(all, compareNamed("resource template", before.ResourceTemplates, after.ResourceTemplates)...)
}

// compareNamed returns the differences of prompts or resource templates.
func compareNamed(what string, before, after []Named) (all []Difference) {
	old := map[string]string{}
	for _, n := range before {
		old[n.Name] = n.Description
	}
	names := map[string]bool{}
	for _, n := range after {
		names[n.Name] = true
		description, found := old[n.Name]
		switch {
		case !found:
			all = append(all, Difference{
				Kind: Added, Danger: Model, Sentence: fmt.Sprintf("there is a new %s %s", what, quote(n.Name)),
			})
		case description != n.Description:
			all = append(all, Difference{
				Kind: Changed, Danger: Model, Sentence: fmt.Sprintf("the %s %s has another description", what, quote(n.Name)),
				Text: compareTexts(description, n.Description),
			})
		}
	}
	for _, n := range before {
		if !names[n.Name] {
			all = append(all, Difference{Kind: Removed, Sentence: fmt.Sprintf("the %s %s is removed", what, quote(n.Name))})
		}
	}
	return all
}

// compareTexts returns two texts as one, whose words are marked that differ: all between the words
// with which both begin and those with which both end.
func compareTexts(before, after string) []Piece {
	old, now := splitWords(before), splitWords(after)
	first := 0
	for first < len(old) && first < len(now) && old[first] == now[first] {
		first++
	}
	last := 0
	for last < len(old)-first && last < len(now)-first && old[len(old)-1-last] == now[len(now)-1-last] {
		last++
	}
	var parts []Piece
	for _, p := range []struct {
		kind  Kind
		words []string
	}{{"", now[:first]}, {Removed, old[first : len(old)-last]}, {Added, now[first : len(now)-last]}, {"", now[len(now)-last:]}} {
		if text := strings.Join(p.words, ""); text != "" {
			parts = append(parts, Piece{p.kind, WriteOut(text)})
		}
	}
	return parts
}

// splitWords returns the words of a text, each with the spaces after it, which joined are the text.
func splitWords(s string) []string {
	words := strings.SplitAfter(s, " ")
	if words[len(words)-1] == "" {
		words = words[:len(words)-1]
	}
	return words
}
