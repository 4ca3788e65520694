package ratelimit

import (
	"slices"
	"testing"
)

func TestParseEntries(t *testing.T) {
	for text, want := range map[string][]Entry{
		"user=ada":         {{"user", "ada"}},
		"user=ada, path=/": {{"user", "ada"}, {"path", "/"}},
		"user=":            {{"user", ""}},
		"user=a=b":         {{"user", "a=b"}},
		"":                 nil,
		"user":             nil,
		"=ada":             nil,
		"user=ada,":        nil,
	} {
		got, err := ParseEntries(text)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got := FormatEntries([]Entry{{"user", "ada"}, {"path", "/"}}); got != "user=ada,path=/" {
		t.Errorf("written: %s", got)
	}
}
