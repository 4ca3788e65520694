package fields

import (
	"slices"
	"strings"
)

// EditDistance returns the number of characters to add, remove or replace.
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// Nearest returns which of some texts is most like a text: at most a few characters differ, or the case of
// letters. Otherwise it is empty.
func Nearest(text string, all []string) (nearest string) {
	least := min(len(text)/4, 3) + 1 //nolint:mnd // a quarter of it, and at most three
	for _, one := range slices.Sorted(slices.Values(all)) {
		if d := len(one) - len(text); d >= least || -d >= least {
			continue
		}
		if d := EditDistance(strings.ToLower(text), strings.ToLower(one)); d < least {
			nearest, least = one, d
		}
	}
	return nearest
}
