package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

const (
	columnGap = 2 // between columns
	// narrowest is how narrow a column of texts may get: a longer word is cut.
	minColumnWidth = 20
	// readable is how narrow the last column may get before it moves below the
	// others: it is where a table has its explanations.
	minLastWidth = 36
)

// isTerminal reports whether somebody sees what is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// columns returns how wide the lines of a terminal are, or 0 for anything else,
// which has no end of a line.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// printTable prints a table for people. On a terminal, long cells are wrapped in
// their columns, or, where the last column would be too narrow for its texts, that
// stands below the others; where even that is too wide, each row becomes a block
// of lines. Every cell is kept printable.
func printTable(w io.Writer, t table) error { return t.printWithin(w, terminalWidth(w)) }

func (t table) printWithin(w io.Writer, width int) error {
	rows := [][]string{t.header}
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = replaceControls(cell)
		}
		rows = append(rows, cells)
	}
	out := bufio.NewWriter(w) // keeps a failure for its flush
	writeTable(out, rows, measureColumns(rows), width)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func writeTable(out *bufio.Writer, rows [][]string, all []extent, width int) {
	last := len(all) - 1
	if widths, ok := fitColumns(all, width); ok && (last == 0 || widths[last] >= min(all[last].full, minLastWidth)) {
		for _, row := range rows {
			printRow(out, row, widths)
		}
		return
	}
	if widths, ok := fitColumns(all[:last], width); ok {
		for _, row := range rows {
			printRow(out, row[:last], widths)
			printBelow(out, row[last], width)
		}
		return
	}
	printBlocks(out, rows, width)
}

// extent is how wide a column is.
type extent struct {
	full    int // with nothing wrapped
	minimum int // where no more can be wrapped
}

// measure returns the extents of all columns. One whose cells are a word each,
// such as a name or an id, is not cut.
func measureColumns(rows [][]string) []extent {
	all := make([]extent, len(rows[0]))
	for i := range all {
		names := true
		for _, row := range rows {
			all[i].full = max(all[i].full, uniseg.StringWidth(row[i]))
			parts := splitWords(row[i])
			names = names && len(parts) <= 1
			for _, word := range parts {
				all[i].minimum = max(all[i].minimum, uniseg.StringWidth(strings.TrimRight(word, " ")))
			}
		}
		if !names {
			all[i].minimum = min(all[i].minimum, minColumnWidth)
		}
	}
	return all
}

// fit returns how wide columns are in a terminal, and whether they can be made
// to fit: the widest are narrowed first.
func fitColumns(all []extent, width int) ([]int, bool) {
	widths, sum, widest := make([]int, len(all)), 0, 0
	for i, e := range all {
		widths[i] = e.full
		sum, widest = sum+e.full, max(widest, e.full)
	}
	for room := width - columnGap*(len(all)-1); width > 0 && sum > room; widest-- {
		if widest == 0 {
			return nil, false
		}
		sum = 0
		for i, e := range all {
			widths[i] = max(e.minimum, min(e.full, widest))
			sum += widths[i]
		}
	}
	return widths, true
}

// printBelow prints what belongs to the row above.
func printBelow(out *bufio.Writer, text string, width int) {
	if text != "" {
		const indent = 2 * columnGap
		printRow(out, []string{"", text}, []int{indent - columnGap, max(minColumnWidth, width-indent)})
	}
}

// printRow prints the cells of a row beside each other.
func printRow(out *bufio.Writer, row []string, widths []int) {
	wrapped, height := make([][]string, len(row)), 1
	for i, cell := range row {
		wrapped[i] = wrapText(cell, widths[i])
		height = max(height, len(wrapped[i]))
	}
	for n := range height {
		var line strings.Builder
		for i, cell := range wrapped {
			text := ""
			if n < len(cell) {
				text = cell[n]
			}
			line.WriteString(text + strings.Repeat(" ", widths[i]-uniseg.StringWidth(text)+columnGap))
		}
		_, _ = out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// printBlocks prints a line for each cell, with the title of its column, and an
// empty line between rows.
func printBlocks(out *bufio.Writer, rows [][]string, width int) {
	titles := 0
	for _, title := range rows[0] {
		titles = max(titles, uniseg.StringWidth(title))
	}
	for n, row := range rows[1:] {
		if n > 0 {
			_, _ = out.WriteString("\n")
		}
		for i, cell := range row {
			printRow(out, []string{rows[0][i], cell}, []int{titles, max(minColumnWidth, width-titles-columnGap)})
		}
	}
}

// hang puts a text behind columns of a fixed width, or, on a terminal where it
// would be too narrow there, below them, wrapped to the terminal's width.
func hangText(columns, text string, width int) string {
	indent := len(columns)
	switch {
	case width == 0:
		return columns + text
	case width-indent < minColumnWidth:
		indent = 2 * columnGap
		columns = strings.TrimRight(columns, " ") + "\n" + strings.Repeat(" ", indent)
	}
	return columns + strings.Join(wrapText(text, max(minColumnWidth, width-indent)), "\n"+strings.Repeat(" ", indent))
}

// wrap breaks a text into lines of a width, between words where that is possible.
func wrapText(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range splitWords(text) {
		if line != "" && uniseg.StringWidth(line+strings.TrimRight(word, " ")) > width {
			lines, line = append(lines, strings.TrimRight(line, " ")), ""
		}
		for uniseg.StringWidth(strings.TrimRight(word, " ")) > width {
			var head string
			head, word = cutText(word, width)
			lines = append(lines, head)
		}
		line += word
	}
	return append(lines, strings.TrimRight(line, " "))
}

// words splits a text where a line may end: behind a space, and behind what
// parts addresses, paths and lists.
func splitWords(text string) []string {
	var list []string
	for text != "" {
		end := strings.IndexAny(text, " /,;&=") + 1
		if end == 0 {
			end = len(text)
		}
		for end < len(text) && text[end] == text[end-1] { // as in https://
			end++
		}
		list = append(list, text[:end])
		text = text[end:]
	}
	return list
}

// cut splits a text that is wider than width, at least behind its first
// character.
func cutText(text string, width int) (head, tail string) {
	for rest, used := text, 0; rest != ""; {
		cluster, after, wide, _ := uniseg.FirstGraphemeClusterInString(rest, -1)
		if used += wide; used > width && len(rest) < len(text) {
			return text[:len(text)-len(rest)], cluster + after
		}
		rest = after
	}
	return text, ""
}
