package fault

import "strings"

// maxQuoted is how much of a value that is not allowed a message repeats, in characters.
const maxQuoted = 60

// OneOf returns the value that a text names, of several allowed ones. It returns Invalid for any
// other text; the message lists the allowed ones, and begins with what the value is of.
func OneOf[T ~string](what, text string, allowed ...T) (T, error) {
	var list strings.Builder
	for i, value := range allowed {
		switch {
		case string(value) == text:
			return value, nil
		case i > 0 && i == len(allowed)-1:
			list.WriteString(" or ")
		case i > 0:
			list.WriteString(", ")
		}
		list.WriteString(string(value))
	}
	return "", Newf(Invalid, "%s must be %s, not %.*q", what, list.String(), maxQuoted, text)
}
