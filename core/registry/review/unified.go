package review

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// LineKind says what becomes of a line of a document.
type LineKind uint8

// The kinds.
const (
	LineKept LineKind = iota
	LineRemoved
	LineAdded
	LineGap // lines that are equal in both documents are left out
)

// Line is a line of a unified difference.
type Line struct {
	Kind  LineKind
	Parts []Part
}

// Part is a part of a line: one that the other document does not have is marked.
type Part struct {
	Text   string
	Marked bool
}

// Text returns the text of the line.
func (l Line) Text() string {
	var b strings.Builder
	for _, p := range l.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// contextLines is how many equal lines are next to a difference.
const contextLines = 3

// Unified returns the difference of two documents as lines, in the order of Ordered, and that of
// Meta; nil for equal ones. Members of objects within a property are in the order of their names. It
// returns fault.Invalid if one of the documents is not a JSON object.
func Unified(before, after []byte) (main, meta []Line, err error) {
	var lines, metaLines [2][]string
	for i, document := range [][]byte{before, after} {
		if lines[i], metaLines[i], err = documentLines(document); err != nil {
			return nil, nil, err
		}
	}
	return unifiedLines(lines[0], lines[1]), unifiedLines(metaLines[0], metaLines[1]), nil
}

// documentLines returns the lines of a document, without Meta, and those of Meta.
func documentLines(document []byte) (main, meta []string, err error) {
	value, err := jsonvalue.Parse(document)
	root, ok := value.(jsonvalue.Object)
	if !ok {
		return nil, nil, fault.Wrap(fault.Invalid, "the document is not a JSON object", err)
	}
	names := make([]string, 0, len(root))
	for name := range root {
		if name != Meta {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, compareDanger)
	for _, name := range names {
		main = append(main, valueLines(jsonvalue.Object{name: root[name]})...)
	}
	if root[Meta] != nil {
		meta = valueLines(jsonvalue.Object{Meta: root[Meta]})
	}
	return main, meta, nil
}

// valueLines returns the lines of the members of an object.
func valueLines(o jsonvalue.Object) []string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(o) // what was JSON always has a JSON form
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	lines = lines[1 : len(lines)-1]
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return lines
}

// unifiedLines returns the difference of two texts; nil for equal ones.
func unifiedLines(before, after []string) []Line {
	if slices.Equal(before, after) {
		return nil
	}
	all := appendLines(nil, before, after, 0)
	markWords(all)
	return withoutDistant(all)
}

// deepest is how often appendLines looks for lines between others, so that the work does not grow with the square of a text.
const deepest = 40

// appendLines appends the difference of two texts: what both begin and end with is kept, and between
// that the lines that each has once.
func appendLines(list []Line, before, after []string, depth int) []Line {
	start := 0
	for start < min(len(before), len(after)) && before[start] == after[start] {
		start++
	}
	list = appendAll(list, LineKept, before[:start])
	before, after = before[start:], after[start:]
	end := 0
	for end < min(len(before), len(after)) && before[len(before)-1-end] == after[len(after)-1-end] {
		end++
	}
	kept := before[len(before)-end:]
	before, after = before[:len(before)-end], after[:len(after)-end]
	from := [2]int{}
	var between [][2]int
	if depth < deepest {
		between = anchors(before, after)
	}
	for _, a := range between {
		list = appendLines(list, before[from[0]:a[0]], after[from[1]:a[1]], depth+1)
		list = appendAll(list, LineKept, before[a[0]:a[0]+1])
		from = [2]int{a[0] + 1, a[1] + 1}
	}
	if from == [2]int{} {
		list = appendAll(appendAll(list, LineRemoved, before), LineAdded, after)
	} else {
		list = appendLines(list, before[from[0]:], after[from[1]:], depth+1)
	}
	return appendAll(list, LineKept, kept)
}

func appendAll(list []Line, kind LineKind, texts []string) []Line {
	for _, text := range texts {
		list = append(list, Line{kind, []Part{{Text: text}}})
	}
	return list
}

// anchors returns the positions of lines that each text has once, as many as are in one order in
// both.
func anchors(before, after []string) [][2]int {
	type place struct{ inBefore, inAfter, before, after int }
	places := map[string]*place{}
	for i, line := range before {
		if places[line] == nil {
			places[line] = &place{}
		}
		places[line].inBefore++
		places[line].before = i
	}
	for i, line := range after {
		if p := places[line]; p != nil {
			p.inAfter++
			p.after = i
		}
	}
	var both [][2]int
	for i, line := range before {
		if p := places[line]; p.inBefore == 1 && p.inAfter == 1 {
			both = append(both, [2]int{i, p.after})
		}
	}
	return longestRising(both)
}

// longestRising returns the longest part of pairs, which rise in the first number, that rises in the
// second one.
func longestRising(pairs [][2]int) [][2]int {
	var ends []int // of the best part of each length, as indexes of pairs
	previous := make([]int, len(pairs))
	for i, p := range pairs {
		n := sort.Search(len(ends), func(k int) bool { return pairs[ends[k]][1] >= p[1] })
		previous[i] = -1
		if n > 0 {
			previous[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, 0)
		}
		ends[n] = i
	}
	if len(ends) == 0 {
		return nil
	}
	rising := make([][2]int, len(ends))
	for n, i := len(ends)-1, ends[len(ends)-1]; n >= 0; n, i = n-1, previous[i] {
		rising[n] = pairs[i]
	}
	return rising
}

// markWords marks in each removed line, and in the added line that takes its place, the words between
// what both have in common.
func markWords(all []Line) {
	for i := 0; i < len(all); {
		removed, added := 0, 0
		for i+removed < len(all) && all[i+removed].Kind == LineRemoved {
			removed++
		}
		for i+removed+added < len(all) && all[i+removed+added].Kind == LineAdded {
			added++
		}
		for n := range min(removed, added) {
			before, after := &all[i+n], &all[i+removed+n]
			before.Parts, after.Parts = markedParts(before.Text(), after.Text())
		}
		i += max(removed+added, 1)
	}
}

// wordForm is the form of a word, a host or a version; of a space; and of a sign.
var wordForm = regexp.MustCompile(`[\p{L}\p{N}_.-]+|\s+|[^\p{L}\p{N}_.\s-]`)

// markedParts returns the parts of two lines. Lines that have no word in common have no marks.
func markedParts(before, after string) (b, a []Part) {
	one, other := wordForm.FindAllString(before, -1), wordForm.FindAllString(after, -1)
	start, end := 0, 0
	for start < min(len(one), len(other)) && one[start] == other[start] {
		start++
	}
	for end < min(len(one), len(other))-start && one[len(one)-1-end] == other[len(other)-1-end] {
		end++
	}
	parts := func(words []string) (all []Part) {
		for _, p := range []Part{
			{Text: strings.Join(words[:start], "")}, {strings.Join(words[start:len(words)-end], ""), true},
			{Text: strings.Join(words[len(words)-end:], "")},
		} {
			if p.Text != "" {
				all = append(all, p)
			}
		}
		return all
	}
	return parts(one), parts(other)
}

// withoutDistant returns the lines with a gap in place of those far from each difference.
func withoutDistant(all []Line) (near []Line) {
	keep := make([]bool, len(all))
	for i, l := range all {
		if l.Kind == LineKept {
			continue
		}
		for k := max(i-contextLines, 0); k < min(i+contextLines+1, len(all)); k++ {
			keep[k] = true
		}
	}
	for i, l := range all {
		switch {
		case keep[i]:
			near = append(near, l)
		case len(near) == 0 || near[len(near)-1].Kind != LineGap:
			near = append(near, Line{Kind: LineGap})
		}
	}
	return near
}
