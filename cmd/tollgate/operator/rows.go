package operator

import (
	"encoding/json"
	"strings"
	"time"
)

// wordList is a list that a table shows as words.
type wordList []string

// String returns the words with commas.
func (l wordList) String() string { return strings.Join(l, ", ") }

// stamp is a time in RFC 3339, in whole seconds; empty without one.
type stamp string

// UnmarshalJSON reads a time of the API.
func (s *stamp) UnmarshalJSON(text []byte) error {
	var t *time.Time
	if err := json.Unmarshal(text, &t); err != nil || t == nil {
		return err
	}
	*s = formatOptionalTime(*t)
	return nil
}

// formatOptionalTime returns a time; empty for the zero value.
func formatOptionalTime(t time.Time) stamp {
	if t.IsZero() {
		return ""
	}
	return stamp(t.UTC().Format(time.RFC3339))
}
