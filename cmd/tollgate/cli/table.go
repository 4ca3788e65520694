package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/rivo/uniseg"
	"golang.org/x/term"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/moment"
)

const (
	columnGap = 2 // spaces between columns
	// minColumnWidth is the minimum width of a column of texts. Longer words are cut.
	minColumnWidth = 20
	// minLastWidth is the width below which the last column, which usually contains explanations,
	// moves below the others.
	minLastWidth = 36
)

// Table is the output of a command, for people and for programs.
type Table struct {
	Header []string
	Rows   [][]string
	Value  any  // printed with --output json
	Cut    bool // the last column is shortened on a terminal, and not wrapped
}

// ListTable returns the table of a list of structs. The fields with a column tag, which is their
// title, are the columns of the table; the JSON output contains all fields.
func ListTable[R any](list []R) Table { return SliceTable(append([]R{}, list...)) }

// SliceTable is ListTable for a slice whose structs are made of a description.
func SliceTable(slice any) Table {
	t, list := Table{Value: slice}, reflect.ValueOf(slice)
	var columns []int
	for i, row := 0, list.Type().Elem(); i < row.NumField(); i++ {
		if title := row.Field(i).Tag.Get("column"); title != "" {
			t.Header, columns = append(t.Header, title), append(columns, i)
		}
	}
	for n := range list.Len() {
		cells := make([]string, len(columns))
		for c, i := range columns {
			cells[c] = cellText(list.Index(n).Field(i))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// cellText returns what a table shows of a value: nothing of nil, and of structs their columns.
func cellText(v reflect.Value) string {
	switch _, words := v.Interface().(fmt.Stringer); {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return ""
	case v.Kind() == reflect.Pointer:
		return cellText(v.Elem())
	case words || v.Kind() != reflect.Slice || v.Type().Elem().Kind() != reflect.Struct:
		return fmt.Sprint(v.Interface())
	}
	var texts []string
	for _, row := range SliceTable(v.Interface()).Rows {
		texts = append(texts, row...)
	}
	return strings.Join(texts, ", ")
}

// TableOf returns the table of a list, with a row for each of its elements.
func TableOf[M, R any](list []M, newRow func(*M) R) Table {
	rows := each.MapRef(list, newRow)
	return ListTable(rows)
}

// RowTable returns the table of one row, whose JSON output is not a list.
func RowTable[R any](row R) Table {
	t := ListTable([]R{row})
	t.Value = row
	return t
}

// widened returns the table of a list of structs with a column for each text, number and flag of its
// JSON output. Other tables are returned as they are.
func (t Table) widened() Table {
	list := reflect.ValueOf(t.Value)
	if list.IsValid() && list.Kind() == reflect.Struct {
		one := reflect.MakeSlice(reflect.SliceOf(list.Type()), 0, 1)
		list = reflect.Append(one, list)
	}
	if !list.IsValid() || list.Kind() != reflect.Slice || list.Type().Elem().Kind() != reflect.Struct {
		return t
	}
	wide, tagged := Table{Value: t.Value, Rows: make([][]string, list.Len())}, 0
	for i, row := 0, list.Type().Elem(); i < row.NumField(); i++ {
		title := row.Field(i).Tag.Get("column")
		if title != "" {
			tagged++
		} else if title = wideTitle(row.Field(i)); title == "" {
			continue
		}
		wide.Header = append(wide.Header, title)
		for n := range list.Len() {
			wide.Rows[n] = append(wide.Rows[n], cellText(list.Index(n).Field(i)))
		}
	}
	if tagged != len(t.Header) {
		return t // it was not made of these structs
	}
	return wide
}

// wideTitle returns the title of a field that only wide tables show; empty if they do not.
func wideTitle(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch f.Type.Kind() {
	case reflect.String, reflect.Bool, reflect.Int:
	default:
		return ""
	}
	if name == "-" || !f.IsExported() {
		return ""
	}
	var title strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			_ = title.WriteByte(' ') // never fails
		}
		_, _ = title.WriteRune(unicode.ToUpper(r)) // never fails
	}
	return title.String()
}

// IsTerminal reports whether a writer is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// TerminalWidth returns the number of columns of a terminal, or 0 if the writer is not a terminal.
func TerminalWidth(w io.Writer) int {
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

// PrintTable prints a table for people, with times as the distance from now. On a terminal it wraps long cells in their columns. If the
// last column would be too narrow for its texts, it moves below the others; if that is still too
// wide, each row becomes a block of lines. Control characters in cells are replaced.
func PrintTable(w io.Writer, t Table) error {
	width := TerminalWidth(w)
	rows := make([][]string, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = slices.Clone(row)
		for c, cell := range row {
			if at, err := time.Parse(time.RFC3339Nano, cell); err == nil {
				rows[i][c] = Ago(at)
			}
		}
	}
	t.Rows = rows
	if t.Cut && width > 0 {
		t.cutLast(width)
	}
	return t.printWithin(w, width)
}

// Ago returns a time as the distance from now, or as a day.
func Ago(t time.Time) string { return strings.ReplaceAll(moment.Ago(t, time.Now()), "\u00a0", " ") }

// cutLast shortens the texts of the last column to what a terminal of a width has after the others.
func (t Table) cutLast(width int) {
	last := len(t.Header) - 1
	for i := range last {
		used := uniseg.StringWidth(t.Header[i])
		for _, row := range t.Rows {
			used = max(used, uniseg.StringWidth(row[i]))
		}
		width -= used + columnGap
	}
	for _, row := range t.Rows {
		if room := max(width, minColumnWidth); uniseg.StringWidth(row[last]) > room {
			head, _ := cutText(ReplaceControls(row[last]), room-1)
			row[last] = head + "…"
		}
	}
}

// printWithin prints the table for a terminal of a width; 0 means any width.
func (t Table) printWithin(w io.Writer, width int) error {
	rows := [][]string{t.Header}
	for _, row := range t.Rows {
		cells := each.Map(row, ReplaceControls)
		rows = append(rows, cells)
	}
	out := bufio.NewWriter(w) // Flush returns its first error
	writeTable(out, rows, measureColumns(rows), width)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write output: %w", err)
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

// extent is the width of a column.
type extent struct {
	full    int // without wrapping
	minimum int // with as much wrapping as possible
}

// measureColumns returns the extents of all columns. A column whose cells are single words, for
// example names or ids, is not cut.
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

// fitColumns returns the widths of columns in a terminal, and whether they fit. It narrows the
// widest columns first.
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

// printBelow prints the last cell of a row below the others, indented.
func printBelow(out *bufio.Writer, text string, width int) {
	if text != "" {
		const indent = 2 * columnGap
		printRow(out, []string{"", text}, []int{indent - columnGap, max(minColumnWidth, width-indent)})
	}
}

// printRow prints the cells of a row next to each other.
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

// printBlocks prints one line per cell, with the title of its column, and an empty line between
// rows.
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

// HangText puts a text after columns of a fixed width, wrapped to the width of the terminal. If
// there is too little room after the columns, the text goes below them.
func HangText(columns, text string, width int) string {
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

// wrapText breaks a text into lines of a maximum width, between words if possible.
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

// splitWords splits a text where a line may end: after a space, and after the separators of
// addresses, paths and lists.
func splitWords(text string) []string {
	var list []string
	for text != "" {
		end := cmp.Or(strings.IndexAny(text, " /,;&=")+1, len(text))
		for end < len(text) && text[end] == text[end-1] { // as in https://
			end++
		}
		list = append(list, text[:end])
		text = text[end:]
	}
	return list
}

// cutText splits a text that is wider than width. The first part has at least one character.
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
