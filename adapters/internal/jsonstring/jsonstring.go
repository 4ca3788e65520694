// Package jsonstring writes strings as JSON for code that appends its JSON to a buffer.
package jsonstring

import (
	"encoding/json"
	"unicode/utf8"
)

// Append appends a JSON string. Most strings need no escapes and are copied.
func Append(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, err := json.Marshal(s)
			if err != nil { // a string always marshals
				return append(b, `""`...)
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
