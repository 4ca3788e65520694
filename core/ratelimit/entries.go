package ratelimit

import (
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// ParseEntries returns the entries of a descriptor that a person writes as "key=value,key=value". A
// value has no comma; it may be empty. It returns fault.Invalid for another form.
func ParseEntries(text string) ([]Entry, error) {
	parts := strings.Split(text, ",")
	entries := make([]Entry, len(parts))
	for i, part := range parts {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || key == "" {
			return nil, fault.New(fault.Invalid, strconv.Quote(part)+" is not of the form key=value")
		}
		entries[i] = Entry{Key: key, Value: value}
	}
	return entries, nil
}

// FormatEntries returns entries as "key=value,key=value".
func FormatEntries(entries []Entry) string {
	parts := make([]string, len(entries))
	for i, e := range entries {
		parts[i] = e.Key + "=" + e.Value
	}
	return strings.Join(parts, ",")
}
