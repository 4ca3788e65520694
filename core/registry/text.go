package registry

import (
	"strings"
	"unicode/utf8"
)

// IsText reports whether every store can hold and search a value: it is valid UTF-8 without NUL
// (contract O-11).
func IsText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
