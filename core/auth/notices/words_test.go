package notices

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestWords expects a text of each kind, without a misspelt name of a part.
func TestWords(t *testing.T) {
	source, err := os.ReadFile("notices.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`(?m)^\t\w+ +Kind = "(\w+)"`).FindAllSubmatch(source, -1)
	if len(kinds) == 0 || len(kinds) != len(wordings()) {
		t.Errorf("there are %d kinds and %d texts", len(kinds), len(wordings()))
	}
	for _, kind := range kinds {
		w := wordings()[Kind(kind[1])]
		parts := []string{w.Subject, w.Event, w.Advice}
		if k := Kind(kind[1]); k != Invitation && k != PasswordLink { // these are sent by e-mail alone
			parts = append(parts, w.Brief)
		}
		if slices.Contains(parts, "") {
			t.Errorf("%s lacks a part: %+v", kind[1], w)
		}
	}
	strict := json.NewDecoder(bytes.NewReader(words))
	strict.DisallowUnknownFields()
	if err := strict.Decode(new(map[Kind]wording)); err != nil {
		t.Error(err)
	}
}
