// Package jsonstring writes strings and times as JSON for code that appends its JSON to a buffer.
package jsonstring

import (
	"encoding/json"
	"strings"
	"time"
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

// AppendTime appends a time as RFC 3339 in UTC with six decimals (contract R-2). A list has
// hundreds of times, and this is faster than time.Format.
func AppendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	micro := t.Nanosecond() / int(time.Microsecond)
	b = appendTwoDigits(append(b, '"'), year/100)
	b = appendTwoDigits(b, year)
	b = appendTwoDigits(append(b, '-'), int(month))
	b = appendTwoDigits(append(b, '-'), day)
	b = appendTwoDigits(append(b, 'T'), hour)
	b = appendTwoDigits(append(b, ':'), minute)
	b = appendTwoDigits(append(b, ':'), second)
	b = appendTwoDigits(append(b, '.'), micro/10_000)
	b = appendTwoDigits(b, micro/100)
	b = appendTwoDigits(b, micro)
	return append(b, 'Z', '"')
}

// appendTwoDigits appends the last two digits of a number.
func appendTwoDigits(b []byte, n int) []byte {
	return append(b, '0'+byte(n/10%10), '0'+byte(n%10))
}

// FormatTime returns a time as AppendTime writes it, without the quotes.
func FormatTime(t time.Time) string { return strings.Trim(string(AppendTime(nil, t)), `"`) }

// TimeOrNull returns a time like FormatTime, and nil for the zero time.
func TimeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return TextOrNull(FormatTime(t))
}

// TextOrNull returns nil for the empty text.
func TextOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
